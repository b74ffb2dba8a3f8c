"""Numbers allotted in the order of commits."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, select, update

from tocsin.store.statements import build_insert
from tocsin.store.tables import EPOCH, sequences

INCIDENT_NUMBER = "incident_number"
INCIDENT_CHANGE = "incident_change"
AUDIT_POSITION = "audit_position"
_EVENTS_KEPT_FROM = "events_kept_from"


def allot_numbers(connection: Connection, name: str, count: int) -> range:
    """Allot the next `count` numbers; the sequence is locked until this transaction ends."""
    statement = (
        update(sequences)
        .where(sequences.c.name == name)
        .values(value=sequences.c.value + count)
        .returning(sequences.c.value)
    )
    last: int = connection.execute(statement).scalar_one()
    return range(last - count + 1, last + 1)


def load_last_allotted(connection: Connection, name: str) -> int:
    """Return the highest committed number, 0 where there is none yet."""
    return int(
        connection.execute(select(sequences.c.value).where(sequences.c.name == name)).scalar_one()
    )


def record_events_kept_from(connection: Connection, moment: datetime) -> None:
    """Record that events before this time may have been removed."""
    value = (moment - EPOCH) // timedelta(microseconds=1)
    statement = build_insert(connection, sequences).values(name=_EVENTS_KEPT_FROM, value=value)
    connection.execute(
        statement.on_conflict_do_update(index_elements=["name"], set_={"value": value})
    )


def load_events_kept_from(connection: Connection) -> datetime:
    """Return the time from which on all events are kept."""
    query = select(sequences.c.value).where(sequences.c.name == _EVENTS_KEPT_FROM)
    return EPOCH + timedelta(microseconds=connection.execute(query).scalar() or 0)
