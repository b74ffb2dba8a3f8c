"""Events with hostile contents, and their bodies for receivers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from receiver_pages import FOLDER
from tocsin import Event, EventType
from tocsin.contracts import find_violations
from tocsin.delivery.destinations.samples import build_sample
from tocsin.delivery.rendering import Renderer
from tocsin.model import EntityKind

RENDERER = Renderer([FOLDER])
NOW = datetime(2026, 11, 21, 5, 33, 1, 123456, UTC)
PASSES_ON = {"envelope"}
"""Receivers that are sent an event's members as they are, however long."""
WRITTEN_BY_OTHERS = ("title", "error", "last_error", "schedule_name", "provider")


def usual(kind: EventType) -> Event:
    return build_sample(kind, "https://tocsin.example", NOW)


def make(kind: EventType, context: Any = None, **members: Any) -> Event:
    """Return an event with these members, as far as such an event has them."""
    event = usual(kind)
    return Event(
        id=event.id,
        event_type=kind,
        timestamp=NOW,
        data={
            **event.data,
            **{member: members[member] for member in members if member in event.data},
        },
        subject=event.subject,
        context=event.context if context is None else context,
    )


def written(kind: EventType, text: str, values: list[str] | None = None) -> Event:
    """Return an event with this text, and these entities, wherever others can write."""
    members = dict.fromkeys(WRITTEN_BY_OTHERS, text)
    return make(kind, context_of(kind, text, [text] if values is None else values), **members)


def context_of(kind: EventType, text: str, values: list[str]) -> dict[str, Any]:
    """Return all that producers tell of an event, with this text and these entities in it."""
    context: dict[str, Any] = dict(usual(kind).context)
    kinds = list(EntityKind)
    entities = [
        {"kind": kinds[place % len(kinds)].value, "value": value, "role": None}
        for place, value in enumerate(values)
    ]
    if kind is EventType.INCIDENT_ALERT:
        more = {"description": text, "entities": entities, "techniques": ["T1110", text]}
        more |= {"external_number": text, "source_url": f"https://siem.example/{text}"}
        return {"incident": {**context["incident"], **more}}
    context["schedule"] = {**context["schedule"], "query": text, "name": text}
    if kind is EventType.INVESTIGATION_COMPLETED:
        assessed = [{"entity": entity, "disposition": "unknown"} for entity in entities]
        context["report"] = {"summary": [{"text": text}], "entities": assessed, "verdict": "benign"}
    return context


def check(receiver: str, event: Event) -> Any:
    """Return what a receiver is sent of an event, having held it against the contract."""
    body = RENDERER.render(receiver, event)
    assert find_violations(RENDERER.contract(receiver), body) == []
    assert event.id.encode() in body or receiver in PASSES_ON
    return json.loads(body)
