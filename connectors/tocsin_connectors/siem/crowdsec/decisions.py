"""From the decisions of an alert, such as a ban, to the events that they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from ipaddress import ip_address, ip_network
from typing import Any

from tocsin import Entity, EntityKind, SiemEvent
from tocsin_connectors.siem.crowdsec.alerts import (
    build_external_id,
    find_source,
    parse_creation_time,
)
from tocsin_connectors.siem.crowdsec.times import GO_ZERO, format_short, parse_duration, parse_time
from tocsin_connectors.siem.records import child, children, number, select_fields, text, union

_DECISION_FIELDS = ("type", "scope", "value", "origin", "scenario")
_TIME_PRECISION = timedelta(seconds=5)  # the server's time is known to the second


def find_decisions(alert: dict[str, Any], entity: Entity, now: datetime) -> Iterator[SiemEvent]:
    """Yield the decisions of an alert that concern an entity, given what time the server has.

    Raises ValueError where the alert has no usable id or time of creation.
    """
    incident, at = build_external_id(alert), parse_creation_time(alert) or GO_ZERO
    is_source = entity in find_source(child(alert, "source"))
    for position, decision in enumerate(children(alert, "decisions")):
        if is_source or _concerns_entity(decision, entity):
            name, validity = (
                number(decision, "id"),
                _compute_validity(decision, _parse_begin(alert), now),
            )
            yield SiemEvent(
                external_id=f"{incident}/decision-{position if name is None else name}",
                occurred_at=at,
                summary=" ".join(_summarize_decision(decision, validity.get("lasts")).split()),
                entities=union([(entity,), find_source(decision)]),
                fields={**select_fields(decision, _DECISION_FIELDS), **validity, "alert": incident},
            )


def _concerns_entity(decision: dict[str, Any], entity: Entity) -> bool:
    """Return whether a decision is about an entity, or a range that it is in."""
    if entity.kind is not EntityKind.IP:
        return entity in find_source(decision)
    try:
        network = ip_network(text(decision, "value") or "", strict=False)
        return ip_address(entity.value) in network
    except ValueError:
        return False


def _parse_begin(alert: dict[str, Any]) -> datetime:
    """Return from when decisions count: CrowdSec adds their length to the last event's time."""
    with suppress(ValueError):
        return parse_time(text(alert, "stop_at") or "")
    return parse_creation_time(alert) or GO_ZERO


def _compute_validity(decision: dict[str, Any], begin: datetime, now: datetime) -> dict[str, Any]:
    """Return how long a decision lasts in all, and until when; `duration` is what is left."""
    left = text(decision, "duration") or ""
    with suppress(ValueError, OverflowError):
        lasts = (
            max(round((now + parse_duration(left) - begin) / _TIME_PRECISION), 0) * _TIME_PRECISION
        )
        return {
            "lasts": format_short(lasts),
            "until": (begin + lasts).isoformat(),
            "active": not left.startswith("-"),
        }
    return {}


def _summarize_decision(decision: dict[str, Any], lasts: str | None) -> str:
    """Say what was decided: `ban of 203.0.113.7 for 4h by crowdsec: crowdsecurity/ssh-bf`."""
    origin, scenario = text(decision, "origin"), text(decision, "scenario")
    parts = [text(decision, "type") or "decision", "of", text(decision, "value") or "nobody"]
    parts += [f"for {lasts}"] if lasts else []
    parts += [f"by {origin}"] if origin else []
    return " ".join(parts) + (f": {scenario}" if scenario else "")
