"""Writing events and reading them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, bindparam, insert, select, update

from tocsin.model import Event, EventType
from tocsin.store import announce
from tocsin.store.tables import events

EVENTS = "events"
"""The topic of events that wait to be routed."""


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


def emit_events(connection: Connection, happened: Sequence[Event]) -> None:
    """Store events in this transaction, to be routed once it is committed."""
    if happened:
        connection.execute(insert(events), [_build_row(event) for event in happened])
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
    """Return the oldest events that are not routed yet, held until this transaction ends.

    Unless `whole`, they come without what is related and without their context, which is most of
    an event.
    """
    statement = _UNROUTED_WHOLE if whole else UNROUTED
    return [
        parse_event_row(row) for row in connection.execute(statement, {"most": limit}).mappings()
    ]


def mark_routed(connection: Connection, routed: Sequence[Event]) -> None:
    """Note that these events have become deliveries, or concern nobody."""
    ids = [event.id for event in routed]
    connection.execute(update(events).where(events.c.id.in_(ids)).values(routed=True))


def parse_event_row(row: RowMapping) -> Event:
    """Return the event that a row of the table `events` holds."""
    return Event(
        id=row["id"],
        event_type=EventType(row["event_type"]),
        timestamp=row["timestamp"],
        data=row["data"],
        subject=row["subject"],
        related=tuple(row.get("related", ())),
        context=row.get("context", {}),
    )
