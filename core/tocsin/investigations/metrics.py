"""Metrics of investigations."""

from __future__ import annotations

from datetime import timedelta

from tocsin.metrics import Metrics
from tocsin.model import QueryOutcome, SessionStatus

ENDINGS = (SessionStatus.COMPLETED, SessionStatus.FAILED)
_DURATIONS = (0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)


class InvestigationMetrics:
    """Counts what this node investigates; for nobody, where there are no metrics."""

    def __init__(self, metrics: Metrics | None = None) -> None:
        self._is_on = metrics is not None
        if metrics is None:
            return
        self._ended = metrics.counter(
            "tocsin_investigations_total",
            "Runs of sessions that ended on this node, by how",
            "status",
        )
        self._duration = metrics.histogram(
            "tocsin_investigation_duration_seconds",
            "How long runs took, on every node that had them",
            _DURATIONS,
            "status",
        )
        self._running = metrics.gauge(
            "tocsin_investigations_running", "Sessions that this node investigates now"
        )
        self._steps = metrics.counter(
            "tocsin_investigation_steps_total",
            "Questions that were asked, of whom, and what came of them",
            "source",
            "outcome",
        )
        for status in ENDINGS:  # from 0 on, or the first would not show as an increase
            self._ended.labels(status.value).inc(0)

    def count_ending(self, status: SessionStatus, spent: timedelta) -> None:
        """Count a run that ended, and how long it took."""
        if self._is_on:
            self._ended.labels(status.value).inc()
            self._duration.labels(status.value).observe(spent.total_seconds())

    def count_step(self, asked_of: str, outcome: QueryOutcome) -> None:
        """Count a question. Who refuses may be anybody's invention: there, only the kind is."""
        if self._is_on:
            refused = outcome is QueryOutcome.REFUSED
            source = asked_of.partition(":")[0] if refused else asked_of
            self._steps.labels(source, outcome.value).inc()

    def note_running(self, count: int) -> None:
        """Note how many sessions this node has under way."""
        if self._is_on:
            self._running.set(count)
