"""Numbers allotted in the order of commits."""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from tocsin.store.tables import sequences

INCIDENT_NUMBER = "incident_number"
INCIDENT_CHANGE = "incident_change"
AUDIT_POSITION = "audit_position"


def allot(connection: Connection, name: str, count: int) -> range:
    """Return the next `count` numbers of a sequence, held until this transaction ends."""
    statement = (
        update(sequences)
        .where(sequences.c.name == name)
        .values(value=sequences.c.value + count)
        .returning(sequences.c.value)
    )
    last: int = connection.execute(statement).scalar_one()
    return range(last - count + 1, last + 1)


def last_allotted(connection: Connection, name: str) -> int:
    """Return the highest number that has been committed, 0 where there is none yet."""
    return int(
        connection.execute(select(sequences.c.value).where(sequences.c.name == name)).scalar_one()
    )
