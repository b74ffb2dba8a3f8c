"""Making due again what waits or rests, and ending what waits for nobody."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, select, update

from tocsin.delivery.queue.seam import DEAD, PARKED, PENDING, queue_topic
from tocsin.delivery.queue.states import is_stored_as
from tocsin.store import announce
from tocsin.store.tables import deliveries, destinations

_EXPIRED = "its destination was deleted"


_IS_WAITING = is_stored_as(PENDING) & deliveries.c.lease.is_(None)
_IS_ON_HOLD = is_stored_as(PARKED)


def requeue_values(now: datetime) -> dict[str, Any]:
    """Return what makes a delivery due, held by nobody, with a schedule of its own."""
    return {
        "state": PENDING,
        "due_at": now,
        "schedule_start": deliveries.c.attempts,
        "lease": None,
        "holder": None,
        "finished_at": None,
    }


def requeue_destination(connection: Connection, destination: str, now: datetime) -> int:
    """Make due what waits for a destination and what is parked, each with a schedule of its own.

    What is under way is left alone. Returns how many deliveries that were.
    """
    of_it = deliveries.c.destination == destination
    moved = sum(
        _requeue_matching(connection, which & of_it, now) for which in (_IS_WAITING, _IS_ON_HOLD)
    )
    announce(connection, queue_topic(destination))
    return moved


def requeue_on_hold(connection: Connection, now: datetime) -> int:
    """Make due what is parked, for templates and plugins may have been mended; return how many."""
    return _requeue_matching(connection, _IS_ON_HOLD, now)


def _requeue_matching(connection: Connection, which: ColumnElement[bool], now: datetime) -> int:
    due = update(deliveries).where(which).values(requeue_values(now))
    return int(connection.execute(due).rowcount)


def expire_deliveries(connection: Connection, now: datetime) -> int:
    """Make dead what waits for deleted destinations, and return how many deliveries that were.

    What is under way at that moment is left to end by itself, for a later call.
    """
    deleted = select(destinations.c.name).where(destinations.c.state == "deleted")
    of_them = deliveries.c.destination.in_(deleted)
    values = {"state": DEAD, "reason": _EXPIRED, "finished_at": now}
    return sum(
        int(connection.execute(update(deliveries).where(which & of_them).values(values)).rowcount)
        for which in (_IS_WAITING, _IS_ON_HOLD)
    )
