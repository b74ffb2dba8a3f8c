"""What waits and what rests at each destination, counted by the indexes of both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    bindparam,
    case,
    func,
    select,
    union_all,
)

from tocsin.delivery.destinations.records import DestinationState
from tocsin.delivery.queue.seam import DEAD, PARKED, PENDING
from tocsin.delivery.queue.states import IS_RESTING, is_stored_as
from tocsin.store.tables import deliveries, destinations, events


@dataclass(slots=True)
class DeliveryBacklog:
    """One destination that was not deleted, and its deliveries that are not there."""

    destination: str
    state: DestinationState
    held_until: datetime | None
    depth: dict[str, int] = field(default_factory=lambda: dict.fromkeys((PENDING, PARKED, DEAD), 0))
    """By state; what waits for its destination to be active counts as parked."""
    oldest: datetime | None = None
    """Since when the oldest of them waits; None where none does."""
    under_way: int = 0


def _count_state(condition: ColumnElement[bool]) -> Select[tuple[str, str, int, datetime, int]]:
    is_held = and_(deliveries.c.lease.is_not(None), deliveries.c.due_at > bindparam("now"))
    return (
        select(
            deliveries.c.destination,
            deliveries.c.state.label("waits_as"),
            func.count().label("count"),
            func.min(deliveries.c.created_at).label("oldest"),
            func.count(case((is_held, 1))).label("under_way"),
        )
        .where(condition)
        .group_by(deliveries.c.destination, deliveries.c.state)
    )


_counts = union_all(_count_state(is_stored_as(PENDING)), _count_state(IS_RESTING)).subquery()
BACKLOGS = (
    select(destinations.c.name, destinations.c.state, destinations.c.held_until, _counts)
    .select_from(destinations)
    .outerjoin(_counts, _counts.c.destination == destinations.c.name)
    .where(destinations.c.state != DestinationState.DELETED)
    .order_by(destinations.c.name)
)
UNROUTED = select(func.count()).select_from(events).where(events.c.routed.is_(False))


def read_backlogs(connection: Connection, now: datetime) -> tuple[list[DeliveryBacklog], int]:
    """Return every destination that was not deleted, and how many events are not routed yet."""
    backlogs = list(_load_backlogs(connection, now))
    return backlogs, connection.execute(UNROUTED).scalar_one()


def _load_backlogs(connection: Connection, now: datetime) -> Iterator[DeliveryBacklog]:
    rows = connection.execute(BACKLOGS, {"now": now}).mappings()
    for name, counts in groupby(rows, key=itemgetter("name")):
        first, *more = counts
        backlog = DeliveryBacklog(name, DestinationState(first["state"]), first["held_until"])
        for row in (first, *more):
            if row["waits_as"] is not None:
                _add_count(backlog, row["waits_as"], row["count"], row["oldest"])
                backlog.under_way += row["under_way"]
        yield backlog


def _add_count(backlog: DeliveryBacklog, state: str, count: int, oldest: datetime) -> None:
    is_parked = state == PENDING and backlog.state is not DestinationState.ACTIVE
    backlog.depth[PARKED if is_parked else state] += count
    if state != DEAD:
        backlog.oldest = min(oldest, backlog.oldest or oldest)
