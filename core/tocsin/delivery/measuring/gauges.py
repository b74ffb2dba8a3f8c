"""What the database says of delivery, as gauges: the same on every node."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import IntEnum
from math import nan

from tocsin.delivery.destinations.records import DestinationState
from tocsin.delivery.measuring.backlog import DeliveryBacklog
from tocsin.delivery.queue.seam import DEAD, PARKED, PENDING
from tocsin.metrics import Metrics

_SHOWN_STATES = (DestinationState.ACTIVE, DestinationState.PAUSED, DestinationState.DISABLED)


class BreakerState(IntEnum):
    """The circuit breaker of a destination."""

    CLOSED = 0
    OPEN = 1
    HALF_OPEN = 2
    """What is tried, or is tried next, finds out whether the receiver is back."""

    @classmethod
    def of(cls, backlog: DeliveryBacklog, now: datetime) -> BreakerState:
        """Return how the destination's is."""
        if backlog.state is not DestinationState.PAUSED:
            return cls.CLOSED
        is_over = backlog.held_until is None or backlog.held_until <= now
        return cls.HALF_OPEN if is_over or backlog.under_way else cls.OPEN


class DeliveryGauges:
    """How much waits and rests, and in what state each destination is."""

    def __init__(self, metrics: Metrics) -> None:
        self._depth = metrics.gauge(
            "tocsin_delivery_queue_depth",
            "Deliveries that wait: pending, or parked while their destination cannot take them",
            "destination",
            "state",
        )
        self._oldest = metrics.gauge(
            "tocsin_delivery_queue_oldest_age_seconds",
            "The age of the oldest delivery that waits, pending or parked; 0 where none does",
            "destination",
        )
        self._dead = metrics.gauge(
            "tocsin_delivery_dead", "Deliveries that are not tried any more", "destination"
        )
        self._breaker = metrics.gauge(
            "tocsin_delivery_breaker_state",
            "The circuit breaker: 0 closed, 1 open, 2 half-open",
            "destination",
        )
        self._state = metrics.gauge(
            "tocsin_delivery_destination_state",
            "1 for the state that the destination is in, 0 for the others",
            "destination",
            "state",
        )
        self._unrouted = metrics.gauge(
            "tocsin_events_unrouted", "Events that have not become deliveries yet"
        )

    def show(self, backlogs: Iterable[DeliveryBacklog], unrouted: int, now: datetime) -> None:
        """Show this, and nothing of what was shown before."""
        self.clear()
        self._unrouted.set(unrouted)
        for backlog in backlogs:
            self._show(backlog, now)

    def clear(self) -> None:
        """Show nothing: it is not known."""
        for gauge in (self._depth, self._oldest, self._dead, self._breaker, self._state):
            gauge.clear()
        self._unrouted.set(nan)

    def _show(self, backlog: DeliveryBacklog, now: datetime) -> None:
        name = backlog.destination
        for state in (PENDING, PARKED):
            self._depth.labels(name, state).set(backlog.depth[state])
        age = (now - backlog.oldest).total_seconds() if backlog.oldest else 0
        self._oldest.labels(name).set(max(0, age))
        self._dead.labels(name).set(backlog.depth[DEAD])
        self._breaker.labels(name).set(BreakerState.of(backlog, now))
        for state in _SHOWN_STATES:
            self._state.labels(name, state).set(backlog.state is state)
