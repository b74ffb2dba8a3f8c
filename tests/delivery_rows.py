"""Destinations, events and deliveries as rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert, select

from tocsin.identifiers import new_id
from tocsin.model import ChangeType, EventType, Json
from tocsin.store.tables import attempts, deliveries, destinations, events

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def add_destination(connection: Connection, name: str = "soc", state: str = "active") -> None:
    """Store a destination."""
    row = {"name": name, "plugin": "webhook", "managed_by": "file", "settings": {}, "revision": 1}
    made = {"created_by": "ana", "created_at": NOW, "updated_at": NOW, "failures": 0, "holds": 0}
    connection.execute(insert(destinations).values(**row, **made, state=state))


def add_event(
    connection: Connection,
    *,
    number: int = 1,
    kind: EventType | ChangeType = EventType.INCIDENT_ALERT,
    at: datetime = NOW,
    routed: bool = True,
    **data: Json,
) -> str:
    """Store an event about the incident of this number, and return its id; `data` is more of it."""
    row = {"id": new_id("evt"), "event_type": kind, "timestamp": at, "routed": routed}
    about = {"data": {"incident_number": number, **data}, "subject": f"incident:{number}"}
    connection.execute(insert(events).values(**row, **about, related=[], context={}))
    return row["id"]


def add_delivery(
    connection: Connection,
    state: str = "dead",
    *,
    to: str = "soc",
    event: str | None = None,
    tried: int = 1,
    **members: Any,
) -> str:
    """Store a delivery of this event, of a new one if none is named, and return its id.

    `members` are those of the delivery and, but for that, of the new event.
    """
    of_event = {
        name: members.pop(name)
        for name in ("number", "kind", "at", "title", "severity")
        if name in members
    }
    event = event or add_event(connection, **of_event)
    subject = connection.scalars(select(events.c.subject).where(events.c.id == event)).one()
    row = {
        "id": members.pop("id", None) or new_id("dlv"),
        "event_id": event,
        "destination": to,
        "subject": subject,
        "state": state,
        "attempts": tried,
        "schedule_start": 0,
        "due_at": NOW + timedelta(minutes=5),
        "created_at": NOW,
        "finished_at": None if state == "pending" else NOW,
    }
    connection.execute(insert(deliveries).values({**row, **members}))
    for number in range(1, tried + 1):
        connection.execute(insert(attempts).values(_attempt(row["id"], number)))
    return row["id"]


def _attempt(delivery_id: str, number: int) -> dict[str, Any]:
    return {
        "delivery_id": delivery_id,
        "number": number,
        "started_at": NOW,
        "duration_ms": 38,
        "outcome": "later",
        "status": 503,
        "reason": "503: busy",
        "response": b"busy \xff",
    }


def rows(connection: Connection) -> dict[str, dict[str, Any]]:
    """Return every delivery by its id."""
    found = connection.execute(select(deliveries)).mappings()
    return {row["id"]: dict(row) for row in found}
