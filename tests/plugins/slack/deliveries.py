"""Deliveries of events to Slack."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from tocsin import Delivery, Event, EventType

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SESSION = "session:9"
SCHEDULE = "schedule:4"


def body(text: str) -> dict[str, Any]:
    """Return a message with this text."""
    section = {"type": "section", "text": {"type": "mrkdwn", "text": text}}
    return {"text": text, "blocks": [section]}


def delivery(
    text: str = "Many failed sign-ins",
    kind: EventType = EventType.INCIDENT_ALERT,
    subject: str = "incident:7",
    *,
    event_id: str = "evt_1",
    content: Any = None,
    **members: Any,
) -> Delivery:
    """Return the delivery of an event whose template renders `text`."""
    event = Event(
        id=event_id,
        event_type=kind,
        timestamp=NOON,
        data={},
        subject=subject,
        related=members.pop("about", ()),
    )
    rendered = json.dumps(body(text) if content is None else content).encode()
    usual = {"id": f"dlv_{event_id}", "attempt": 1, "remote_id": None}
    return Delivery(event=event, render=lambda _: rendered, **{**usual, **members})


def completed(text: str = "It was benign", **members: Any) -> Delivery:
    """Return the event of a completed investigation about incident 7."""
    members = {"event_id": "evt_2", "about": (SCHEDULE, "incident:7"), **members}
    return delivery(text, EventType.INVESTIGATION_COMPLETED, SESSION, **members)


def failed(text: str = "It failed", **members: Any) -> Delivery:
    """Return the event of a schedule's failed run."""
    return delivery(
        text, EventType.INVESTIGATION_FAILED, SCHEDULE, **{"event_id": "evt_3", **members}
    )


def disabled(text: str = "It was disabled", **members: Any) -> Delivery:
    """Return the event of a disabled schedule."""
    return delivery(text, EventType.SCHEDULE_DISABLED, SCHEDULE, **{"event_id": "evt_4", **members})
