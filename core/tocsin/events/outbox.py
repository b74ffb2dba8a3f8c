"""Writing events and reading them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select, update

from tocsin.model import Event, EventType
from tocsin.store.tables import events

UNROUTED = (
    select(events)
    .where(events.c.routed.is_(False))
    .order_by(events.c.id)
    .with_for_update(skip_locked=True)
)


def emit(connection: Connection, happened: Sequence[Event]) -> None:
    """Store events in this transaction, to be routed once it is committed."""
    if happened:
        connection.execute(insert(events), [_row(event) for event in happened])


def _row(event: Event) -> dict[str, Any]:
    return {
        "id": event.id,
        "event_type": event.event_type.value,
        "timestamp": event.timestamp,
        "data": dict(event.data),
        "subject": event.subject,
        "related": list(event.related),
        "context": dict(event.context),
        "routed": False,
    }


def unrouted(connection: Connection, limit: int) -> list[Event]:
    """Return the oldest events that are not routed yet, held until this transaction ends."""
    return [event_of(row) for row in connection.execute(UNROUTED.limit(limit)).mappings()]


def mark_routed(connection: Connection, routed: Sequence[Event]) -> None:
    """Note that these events have become deliveries, or concern nobody."""
    ids = [event.id for event in routed]
    connection.execute(update(events).where(events.c.id.in_(ids)).values(routed=True))


def event_of(row: RowMapping) -> Event:
    """Return the event that a row of the table `events` holds."""
    return Event(
        id=row["id"],
        event_type=EventType(row["event_type"]),
        timestamp=row["timestamp"],
        data=row["data"],
        subject=row["subject"],
        related=tuple(row["related"]),
        context=row["context"],
    )
