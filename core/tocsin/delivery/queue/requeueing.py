"""Making due again what waits or rests, and ending what waits for nobody."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, Connection, literal_column, select, update

from tocsin.delivery.queue.seam import DEAD, PARKED, PENDING, queued
from tocsin.store import announce
from tocsin.store.tables import deliveries, destinations

_BURIED = "its destination was deleted"


def in_state(state: str) -> ColumnElement[bool]:
    """Return the condition, written out: a partial index serves none that comes as a parameter."""
    written: ColumnElement[bool] = deliveries.c.state == literal_column(f"'{state}'")
    return written


_WAITS = in_state(PENDING) & deliveries.c.lease.is_(None)
# the second half is what the index is made for
_RESTS = in_state(PARKED) & deliveries.c.state.in_(
    (literal_column(f"'{DEAD}'"), literal_column(f"'{PARKED}'"))
)


def requeue(connection: Connection, destination: str, now: datetime) -> int:
    """Make due what waits for a destination and what is parked, each with a schedule of its own.

    What is under way is left alone. Returns how many deliveries that were.
    """
    of_it = deliveries.c.destination == destination
    moved = sum(_requeue(connection, which & of_it, now) for which in (_WAITS, _RESTS))
    announce(connection, queued(destination))
    return moved


def unpark_all(connection: Connection, now: datetime) -> int:
    """Make due what is parked, for templates and plugins may have been mended; return how many."""
    return _requeue(connection, _RESTS, now)


def _requeue(connection: Connection, which: ColumnElement[bool], now: datetime) -> int:
    due = update(deliveries).where(which)
    values = {"state": PENDING, "due_at": now, "finished_at": None}
    return int(
        connection.execute(due.values(schedule_start=deliveries.c.attempts, **values)).rowcount
    )


def bury(connection: Connection, now: datetime) -> int:
    """Make dead what waits for deleted destinations, and return how many deliveries that were.

    What is under way at that moment is left to end by itself, for a later call.
    """
    deleted = select(destinations.c.name).where(destinations.c.state == "deleted")
    of_them = deliveries.c.destination.in_(deleted)
    values = {"state": DEAD, "reason": _BURIED, "finished_at": now}
    return sum(
        int(connection.execute(update(deliveries).where(which & of_them).values(values)).rowcount)
        for which in (_WAITS, _RESTS)
    )
