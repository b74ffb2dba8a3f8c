"""Clocks of the nodes of a shared database, compared with the database's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, select

from tocsin.clock import Clock
from tocsin.store.statements import build_insert
from tocsin.store.tables import nodes

CLOCK_TOLERANCE = timedelta(seconds=2)
"""The smallest difference between two clocks that is reported."""
CURRENT = timedelta(seconds=30)
"""How long the stored clock of a node counts as current."""
_KEPT = timedelta(days=1)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class NodeClock:
    """The clock of a node."""

    number: int
    name: str
    """The machine and the port of the node, such as `soc-1:8080`."""
    offset: timedelta
    """How far it is ahead of the database clock; negative if it is behind."""


def load_database_time(connection: Connection) -> datetime | None:
    """Return the time of the database's clock; None for SQLite, which has the machine's."""
    if connection.dialect.name != "postgresql":
        return None
    time: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return time


def measure_offset(connection: Connection, clock: Clock) -> timedelta | None:
    """Return how far a clock is ahead of the database's; negative where it is behind.

    It is at least that far: the duration of the query counts for the clock. None for SQLite.
    """
    before = clock.now()
    there = load_database_time(connection)
    after = clock.now()
    if there is None:
        return None
    if there < before:
        return before - there
    return min(after - there, timedelta(0))


def store_clock(connection: Connection, node: NodeClock, now: datetime) -> None:
    """Store a node's clock at `now` of the database, and remove those of nodes long gone."""
    connection.execute(delete(nodes).where(nodes.c.seen_at < now - _KEPT))
    values = {
        "name": node.name,
        "clock_offset_ms": node.offset // _MILLISECOND,
        "seen_at": now,
    }
    statement = build_insert(connection, nodes).values(number=node.number, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=["number"], set_=values))


def load_clocks(connection: Connection, now: datetime) -> Sequence[NodeClock]:
    """Return the clocks of the nodes that are current at `now` of the database, by their names."""
    current = select(nodes).where(nodes.c.seen_at > now - CURRENT)
    rows = connection.execute(current.order_by(nodes.c.name, nodes.c.number))
    return [NodeClock(row.number, row.name, row.clock_offset_ms * _MILLISECOND) for row in rows]


def remove_clock(connection: Connection, number: int) -> None:
    """Remove the clock of a node that is stopping."""
    connection.execute(delete(nodes).where(nodes.c.number == number))


def describe_offset(offset: timedelta) -> str:
    """Return a difference between clocks in words, such as `2.5 s ahead`."""
    seconds = offset.total_seconds()
    return f"{abs(seconds):.1f} s {'ahead' if seconds > 0 else 'behind'}"
