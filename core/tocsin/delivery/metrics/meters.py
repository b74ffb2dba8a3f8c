"""Counters and histograms of delivery attempts on this node."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import cache, partial

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from tocsin.clock import Clock
from tocsin.delivery.metrics.gauges import (
    DeliveryBacklog,
    DeliveryGauges,
    count_suppressed,
    read_backlogs,
)
from tocsin.delivery.queue.states import DELIVERED, AttemptResult
from tocsin.delivery.routing.hold import find_routing_hold
from tocsin.metrics import Metrics
from tocsin.store import Database

OUTCOMES = ("delivered", "later", "failed", "refused", "misconfigured")
"""Outcomes of attempts, as in the attempt log."""
_DURATIONS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_LATENCIES = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 7_200, 43_200, 86_400, 259_200)
_PATIENCE = 5  # seconds; Prometheus waits for ten
_log = structlog.get_logger()


class DeliveryMeters:
    """Attempts of this node, by destination."""

    def __init__(self, metrics: Metrics) -> None:
        self.ended = metrics.counter(
            "tocsin_delivery_attempts_total",
            "Delivery attempts that this node made, by outcome",
            "destination",
            "outcome",
        )
        self.late = metrics.counter(
            "tocsin_delivery_leases_lost_total",
            "Attempts that finished after their lease expired, so the event may be delivered twice",
            "destination",
        )
        self.duration = metrics.histogram(
            "tocsin_delivery_attempt_duration_seconds",
            "Duration of this node's delivery attempts",
            _DURATIONS,
            "destination",
        )
        self.latency = metrics.histogram(
            "tocsin_delivery_latency_seconds",
            "Time from an event to its delivery, including waiting and retries",
            _LATENCIES,
            "destination",
        )
        self.closed = metrics.counter(
            "tocsin_objects_closed_total",
            "Tickets, alerts and cases that this node's deliveries closed",
            "destination",
        )
        self._known: dict[str, DeliveryMeter] = {}

    def of(self, destination: str) -> DeliveryMeter:
        """Return a new meter for a worker that starts."""
        meter = self._known[destination] = DeliveryMeter(self, destination)
        return meter

    def known(self) -> dict[str, DeliveryMeter]:
        """Return the latest meter of each destination."""
        return dict(self._known)

    def forget(self, destination: str, meter: DeliveryMeter) -> None:
        """Remove a destination's series, unless another worker has started for it since."""
        if self._known[destination] is meter:
            del self._known[destination]
            for metric in (self.ended, self.late, self.duration, self.latency, self.closed):
                metric.remove_by_labels({"destination": destination})


class DeliveryMeter:
    """Counts the attempts of one worker."""

    def __init__(self, meters: DeliveryMeters, destination: str) -> None:
        self._ended_as = cache(partial(meters.ended.labels, destination))
        self._late = meters.late.labels(destination)
        self._duration = meters.duration.labels(destination)
        self._latency = meters.latency.labels(destination)
        self._closed = meters.closed.labels(destination)
        for outcome in OUTCOMES:  # start at 0: the first one counts as an increase
            self._ended_as(outcome)

    def count(self, ended: Sequence[AttemptResult], late: Sequence[AttemptResult]) -> None:
        """Count finished attempts; `late` are among them."""
        for outcome, times in Counter([attempt.outcome for attempt in ended]).items():
            self._ended_as(outcome).inc(times)
        for attempt in ended:
            self._duration.observe(_seconds(attempt.started_at, attempt.ended_at))
            if attempt.state == DELIVERED:
                happened_at = attempt.claimed.event.timestamp
                self._latency.observe(_seconds(happened_at, attempt.ended_at))
        self._closed.inc(sum(len(attempt.closed) for attempt in ended))
        if late:
            self._late.inc(len(late))


class DeliveryMetrics:
    """All delivery metrics of one node."""

    def __init__(self, metrics: Metrics, database: Database, clock: Clock) -> None:
        self.meters = DeliveryMeters(metrics)
        self.routed = metrics.counter(
            "tocsin_events_routed_total", "Events that this node turned into deliveries"
        )
        self.taken_over = metrics.counter(
            "tocsin_delivery_takeovers_total",
            "Deliveries that this node took over from lost nodes",
        )
        self._database_up = metrics.gauge(
            "tocsin_database_up", "1 if the database responded to the scrape, otherwise 0"
        )
        self._gauges = DeliveryGauges(metrics)
        self._database = database
        self._clock = clock
        metrics.read_by(self.read)

    async def read(self) -> None:
        """Read the gauges from the database; if it does not respond, expose none of them."""
        known, now = self.meters.known(), self._clock.now()
        try:
            async with asyncio.timeout(_PATIENCE):
                backlogs, unrouted, suppressed, hold = await self._database.read(_read_gauges, now)
        except (SQLAlchemyError, OSError) as error:
            reason = str(getattr(error, "orig", None) or error) or "no response in time"
            _log.warning("backlog cannot be measured", reason=reason)
            self._gauges.clear()
            self._database_up.set(0)
            return
        self._gauges.show(backlogs, unrouted, suppressed, now, on_hold=hold is not None)
        self._database_up.set(1)
        for name in known.keys() - {backlog.destination for backlog in backlogs}:
            self.meters.forget(name, known[name])


def _read_gauges(
    connection: Connection, now: datetime
) -> tuple[list[DeliveryBacklog], int, int, str | None]:
    backlogs, unrouted = read_backlogs(connection, now)
    return backlogs, unrouted, count_suppressed(connection), find_routing_hold(connection)


def _seconds(begin: datetime, end: datetime) -> float:
    """Return the duration in seconds; 0 if the clock was set back."""
    return max(0.0, (end - begin).total_seconds())
