"""Gauges of backlogs and destination states, read from the database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from itertools import groupby
from math import nan
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

from tocsin.delivery.destinations.repository import DestinationState
from tocsin.delivery.queue.states import DEAD, IS_RESTING, ON_HOLD, PENDING, is_stored_as
from tocsin.metrics import Metrics
from tocsin.store.tables import deliveries, destinations, events, suppressions

_SHOWN_STATES = (DestinationState.ACTIVE, DestinationState.PAUSED, DestinationState.DISABLED)


@dataclass(slots=True)
class DeliveryBacklog:
    """Undelivered deliveries to one destination that is not deleted."""

    destination: str
    state: DestinationState
    held_until: datetime | None
    depth: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys((PENDING, ON_HOLD, DEAD), 0)
    )
    """By shown state: pending deliveries of an inactive destination count as on hold."""
    oldest: datetime | None = None
    """Creation time of the oldest waiting delivery, or None if there is none."""
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
_SUPPRESSED = select(func.coalesce(func.sum(suppressions.c.suppressed_events), 0))


def read_backlogs(connection: Connection, now: datetime) -> tuple[list[DeliveryBacklog], int]:
    """Return the backlogs of all destinations that are not deleted, and the unrouted events."""
    backlogs = list(_load_backlogs(connection, now))
    return backlogs, connection.execute(UNROUTED).scalar_one()


def count_suppressed(connection: Connection) -> int:
    """Return how many events have been suppressed in total."""
    return int(connection.execute(_SUPPRESSED).scalar_one())


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
    is_on_hold = state == PENDING and backlog.state is not DestinationState.ACTIVE
    backlog.depth[ON_HOLD if is_on_hold else state] += count
    if state != DEAD:
        backlog.oldest = min(oldest, backlog.oldest or oldest)


class BreakerState(IntEnum):
    """State of a destination's circuit breaker."""

    CLOSED = 0
    OPEN = 1
    HALF_OPEN = 2
    """The current or next attempt is a probe of whether the receiver is available again."""

    @classmethod
    def of(cls, backlog: DeliveryBacklog, now: datetime) -> BreakerState:
        """Return the state of the breaker of a destination."""
        if backlog.state is not DestinationState.PAUSED:
            return cls.CLOSED
        is_over = backlog.held_until is None or backlog.held_until <= now
        return cls.HALF_OPEN if is_over or backlog.under_way else cls.OPEN


class DeliveryGauges:
    """Gauges of backlogs and destination states."""

    def __init__(self, metrics: Metrics) -> None:
        self._depth = metrics.gauge(
            "tocsin_delivery_queue_depth",
            "Deliveries that are pending, or on hold until their destination can accept them",
            "destination",
            "state",
        )
        self._oldest = metrics.gauge(
            "tocsin_delivery_queue_oldest_age_seconds",
            "Age of the oldest delivery that is pending or on hold; 0 if there is none",
            "destination",
        )
        self._dead = metrics.gauge(
            "tocsin_delivery_dead", "Dead deliveries, which Tocsin no longer retries", "destination"
        )
        self._breaker = metrics.gauge(
            "tocsin_delivery_breaker_state",
            "State of the circuit breaker: 0 closed, 1 open, 2 half-open",
            "destination",
        )
        self._state = metrics.gauge(
            "tocsin_delivery_destination_state",
            "1 for the destination's current state, 0 for all other states",
            "destination",
            "state",
        )
        self._unrouted = metrics.gauge(
            "tocsin_events_unrouted", "Events that have not been routed yet"
        )
        self._suppressed = metrics.gauge(
            "tocsin_events_suppressed",
            "Events and changes that suppression rules have withheld from destinations",
        )
        self._hold = metrics.gauge(
            "tocsin_routing_on_hold",
            "1 if all events wait because no configuration has been applied yet, otherwise 0",
        )

    def show(
        self,
        backlogs: Iterable[DeliveryBacklog],
        unrouted: int,
        suppressed: int,
        now: datetime,
        *,
        on_hold: bool,
    ) -> None:
        """Expose these values instead of all earlier ones."""
        self.clear()
        self._unrouted.set(unrouted)
        self._suppressed.set(suppressed)
        self._hold.set(on_hold)
        for backlog in backlogs:
            self._show(backlog, now)

    def clear(self) -> None:
        """Expose no values, because none are known."""
        for gauge in (self._depth, self._oldest, self._dead, self._breaker, self._state):
            gauge.clear()
        self._unrouted.set(nan)
        self._suppressed.set(nan)
        self._hold.set(nan)

    def _show(self, backlog: DeliveryBacklog, now: datetime) -> None:
        name = backlog.destination
        for state in (PENDING, ON_HOLD):
            self._depth.labels(name, state).set(backlog.depth[state])
        age = (now - backlog.oldest).total_seconds() if backlog.oldest else 0
        self._oldest.labels(name).set(max(0, age))
        self._dead.labels(name).set(backlog.depth[DEAD])
        self._breaker.labels(name).set(BreakerState.of(backlog, now))
        for destination_state in _SHOWN_STATES:
            is_current = backlog.state is destination_state
            self._state.labels(name, destination_state).set(is_current)
