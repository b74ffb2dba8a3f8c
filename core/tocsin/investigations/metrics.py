"""Metrics of investigations."""

from __future__ import annotations

from datetime import timedelta

from tocsin.metrics import Metrics
from tocsin.model import QueryOutcome, SessionStatus

ENDINGS = (SessionStatus.COMPLETED, SessionStatus.FAILED)
_DURATIONS = (0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)


class InvestigationMetrics:
    """Counts the investigations of this node; does nothing without metrics."""

    def __init__(self, metrics: Metrics | None = None) -> None:
        self._is_on = metrics is not None
        if metrics is None:
            return
        self._ended = metrics.counter(
            "tocsin_investigations_total",
            "Investigation runs that ended on this node, by status",
            "status",
        )
        self._duration = metrics.histogram(
            "tocsin_investigation_duration_seconds",
            "Duration of investigation runs, including earlier work by other nodes",
            _DURATIONS,
            "status",
        )
        self._running = metrics.gauge(
            "tocsin_investigations_running", "Investigation sessions running on this node"
        )
        self._steps = metrics.counter(
            "tocsin_investigation_steps_total",
            "Queries sent in investigations, by source and outcome",
            "source",
            "outcome",
        )
        for status in ENDINGS:  # starts at 0, so that the first one shows as an increase
            self._ended.labels(status.value).inc(0)

    def count_ending(self, status: SessionStatus, spent: timedelta) -> None:
        """Count a run that ended, with its duration."""
        if self._is_on:
            self._ended.labels(status.value).inc()
            self._duration.labels(status.value).observe(spent.total_seconds())

    def count_step(self, asked_of: str, outcome: QueryOutcome) -> None:
        """Count a question; one that was refused by kind only, since its source may be invented."""
        if self._is_on:
            refused = outcome is QueryOutcome.REFUSED
            source = asked_of.partition(":")[0] if refused else asked_of
            self._steps.labels(source, outcome.value).inc()

    def note_running(self, count: int) -> None:
        """Set the number of sessions that this node runs."""
        if self._is_on:
            self._running.set(count)
