"""Deliveries that become due again, or expire."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select, update

from tocsin.delivery.queue.states import DEAD, ON_HOLD, PENDING, is_stored_as, queue_topic
from tocsin.errors import CANNOT_CONNECT
from tocsin.events import RESTORED
from tocsin.store import announce
from tocsin.store.tables import deliveries, destinations

_EXPIRED = "its destination was deleted"
_IS_WAITING = is_stored_as(PENDING) & deliveries.c.lease.is_(None)
_IS_RETRIED = is_stored_as(ON_HOLD) & ~func.coalesce(deliveries.c.reason, "").startswith(RESTORED)


def requeue_values(now: datetime) -> dict[str, Any]:
    """Return the columns that make a delivery due, without a lease, on a new retry schedule."""
    return {
        "state": PENDING,
        "due_at": now,
        "schedule_start": deliveries.c.attempts,
        "lease": None,
        "holder": None,
        "finished_at": None,
    }


def requeue_destination(connection: Connection, destination: str, now: datetime) -> int:
    """Make the waiting and on-hold deliveries of a destination due, on new retry schedules.

    Deliveries in progress stay as they are. Returns the number of deliveries made due.
    """
    at_destination = deliveries.c.destination == destination
    moved = sum(
        _requeue_matching(connection, condition & at_destination, now)
        for condition in (_IS_WAITING, _IS_RETRIED)
    )
    announce(connection, queue_topic(destination))
    return moved


def requeue_after_outage(connection: Connection, destination: str, now: datetime) -> int:
    """Make deliveries due that wait because the connection failed, and return their number.

    Their retry schedules continue. Deliveries that failed for other reasons keep their times,
    because the receiver may fail on them again and again.
    """
    waits = (
        deliveries.c.destination == destination,
        _IS_WAITING,
        deliveries.c.due_at > now,
        deliveries.c.reason.contains(CANNOT_CONNECT),
    )
    moved = int(connection.execute(update(deliveries).where(*waits).values(due_at=now)).rowcount)
    if moved:
        announce(connection, queue_topic(destination))
    return moved


def requeue_on_hold(connection: Connection, now: datetime) -> int:
    """Make all deliveries on hold due, except for restored ones, and return their number."""
    return _requeue_matching(connection, _IS_RETRIED, now)


def _requeue_matching(connection: Connection, condition: ColumnElement[bool], now: datetime) -> int:
    due = update(deliveries).where(condition).values(requeue_values(now))
    return int(connection.execute(due).rowcount)


def requeue_pending(connection: Connection, now: datetime) -> int:
    """Make all pending deliveries due, unless they are in progress, and return their number."""
    return _requeue_matching(connection, _IS_WAITING, now)


def expire_deliveries(connection: Connection, now: datetime) -> int:
    """Mark waiting deliveries of deleted destinations dead, and return their number.

    Deliveries in progress are left for a later call.
    """
    deleted = select(destinations.c.name).where(destinations.c.state == "deleted")
    is_orphaned = deliveries.c.destination.in_(deleted)
    expired = update(deliveries).values(state=DEAD, reason=_EXPIRED, finished_at=now)
    return sum(
        int(connection.execute(expired.where(condition & is_orphaned)).rowcount)
        for condition in (_IS_WAITING, is_stored_as(ON_HOLD))
    )
