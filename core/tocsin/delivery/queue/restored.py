"""Deliveries in a restored backup, which may have been sent after the backup was made."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, select, update

from tocsin.delivery.queue.requeue import requeue_values
from tocsin.delivery.queue.states import ON_HOLD, PENDING, is_stored_as, queue_topic
from tocsin.events import RESTORED
from tocsin.store import announce
from tocsin.store.tables import deliveries


def hold_pending_deliveries(connection: Connection, reason: str, now: datetime) -> int:
    """Put all unfinished deliveries on hold because of the restore, and return their number."""
    held = {"state": ON_HOLD, "reason": reason, "lease": None, "holder": None, "finished_at": now}
    return sum(
        int(connection.execute(update(deliveries).where(condition).values(held)).rowcount)
        for condition in (is_stored_as(ON_HOLD), is_stored_as(PENDING))
    )


def release_restored_deliveries(
    connection: Connection, destination: str | None, now: datetime
) -> int:
    """Release the deliveries that a restore put on hold, and return their number."""
    condition = is_stored_as(ON_HOLD) & deliveries.c.reason.startswith(RESTORED)
    if destination is not None:
        condition &= deliveries.c.destination == destination
    names = connection.scalars(select(deliveries.c.destination).where(condition).distinct()).all()
    due = {**requeue_values(now), "reason": None}
    moved = connection.execute(update(deliveries).where(condition).values(due)).rowcount
    for name in names:
        announce(connection, queue_topic(name))
    return int(moved)
