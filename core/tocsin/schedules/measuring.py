"""How schedules do, in numbers."""

from __future__ import annotations

from collections.abc import Iterable

from tocsin.investigations import FailureCause, RunFailure
from tocsin.metrics import Metrics
from tocsin.schedules.firing import FireResult
from tocsin.schedules.records import RunState

_LATENESS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)
FIRE_OUTCOMES = (RunState.RUNNING, RunState.WAITING, RunState.SKIPPED, RunState.MISSED)


class ScheduleMetrics:
    """Counts what this node runs and ends; for nobody, where there are no metrics."""

    def __init__(self, metrics: Metrics | None = None) -> None:
        self._is_on = metrics is not None
        if metrics is None:
            return
        self._fires = metrics.counter(
            "tocsin_schedule_fires_total",
            "Fire times that this node saw to, by what became of them",
            "outcome",
        )
        self._lateness = metrics.histogram(
            "tocsin_schedule_lateness_seconds",
            "How long after they were due runs were begun",
            _LATENESS,
        )
        self._failures = metrics.counter(
            "tocsin_schedule_failures_total",
            "Scheduled runs that failed, as this node ended them, by why",
            "cause",
        )
        self._disabled = metrics.counter(
            "tocsin_schedules_disabled_total", "Schedules that this node disabled, for failing"
        )
        self._not_taken_up = metrics.counter(
            "tocsin_schedule_not_taken_up_total",
            "Runs that were begun and no node investigated in time, as this node noticed",
        )
        for state in FIRE_OUTCOMES:  # from 0 on, or the first would not show as an increase
            self._fires.labels(state.value).inc(0)
        for cause in FailureCause:
            self._failures.labels(cause.value).inc(0)

    def count_fires(self, fired: Iterable[FireResult]) -> None:
        """Count what became of fire times."""
        if not self._is_on:
            return
        for it in fired:
            self._fires.labels(it.state.value).inc(it.count)
            if it.state is not RunState.MISSED:
                self._lateness.observe(max(it.lateness.total_seconds(), 0))

    def count_not_taken_up(self) -> None:
        """Count a run that no node has taken up in time."""
        if self._is_on:
            self._not_taken_up.inc()

    def count_ending(self, failure: RunFailure | None, *, was_disabled: bool) -> None:
        """Count how a run ended."""
        if self._is_on and failure is not None:
            self._failures.labels(failure.cause.value).inc()
            self._disabled.inc(was_disabled)
