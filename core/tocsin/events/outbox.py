"""Writing events and reading them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, bindparam, insert, select, update

from tocsin.model import Event, EventType
from tocsin.store import announce
from tocsin.store.tables import events

EVENTS = "events"
"""The topic of events that are not routed yet."""


def _select_unrouted(*, whole: bool) -> Select[Any]:
    rest = (events.c.related, events.c.context) if whole else ()
    columns = (
        events.c.id,
        events.c.event_type,
        events.c.timestamp,
        events.c.data,
        events.c.subject,
    )
    return (
        select(*columns, *rest)
        .where(events.c.routed.is_(False))
        .order_by(events.c.id)
        .limit(bindparam("most"))
        .with_for_update(skip_locked=True)
    )


UNROUTED = _select_unrouted(whole=False)
_UNROUTED_WHOLE = _select_unrouted(whole=True)


def emit_events(connection: Connection, new_events: Sequence[Event]) -> None:
    """Store events in this transaction; they are routed once it is committed."""
    if new_events:
        connection.execute(insert(events), [_build_row(event) for event in new_events])
        announce(connection, EVENTS)


def _build_row(event: Event) -> dict[str, Any]:
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


def load_unrouted(connection: Connection, limit: int, *, whole: bool = True) -> list[Event]:
    """Return the oldest events that are not routed yet, locked until this transaction ends.

    Unless `whole`, the events lack `related` and `context`, which is most of their size.
    """
    statement = _UNROUTED_WHOLE if whole else UNROUTED
    return [
        parse_event_row(row) for row in connection.execute(statement, {"most": limit}).mappings()
    ]


def mark_routed(connection: Connection, routed: Sequence[Event]) -> None:
    """Mark events as routed, with or without deliveries."""
    ids = [event.id for event in routed]
    connection.execute(update(events).where(events.c.id.in_(ids)).values(routed=True))


def parse_event_row(row: RowMapping) -> Event:
    """Return the event in a row of the table `events`."""
    return Event(
        id=row["id"],
        event_type=EventType(row["event_type"]),
        timestamp=row["timestamp"],
        data=row["data"],
        subject=row["subject"],
        related=tuple(row.get("related", ())),
        context=row.get("context", {}),
    )
