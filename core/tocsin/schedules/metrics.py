"""Schedule metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import nan

from sqlalchemy import Connection, func, select

from tocsin.clock import Clock
from tocsin.investigations import FailureCause, RunFailure
from tocsin.metrics import Metrics
from tocsin.schedules.due_schedules import FireResult
from tocsin.schedules.records import RunState, ScheduleStatus
from tocsin.store.tables import IS_THERE, schedules

_STATUSES = (ScheduleStatus.ACTIVE, ScheduleStatus.DISABLED)
_s = schedules.c


@dataclass(frozen=True, slots=True)
class ScheduleSummary:
    """Summary of the schedules."""

    counts: Mapping[str, int]
    """The number of schedules by status."""
    due_at: datetime | None
    """The earliest due time."""


class ScheduleGauges:
    """Gauges of the schedules by status, and of the longest delay."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._clock = clock
        self._count = metrics.gauge("tocsin_schedules", "Schedules, by status", "status")
        self._overdue = metrics.gauge(
            "tocsin_schedules_overdue_seconds",
            "How long the most overdue schedule has been due; 0 if none is due",
        )

    def show(self, standing: ScheduleSummary) -> None:
        """Set the gauges."""
        for status in _STATUSES:
            self._count.labels(status.value).set(standing.counts.get(status, 0))
        due_at = standing.due_at
        overdue = 0 if due_at is None else (self._clock.now() - due_at).total_seconds()
        self._overdue.set(max(overdue, 0))

    def clear(self) -> None:
        """Clear the gauges while the values are unknown."""
        self._count.clear()
        self._overdue.set(nan)


def load_summary(connection: Connection) -> ScheduleSummary:
    """Return the summary of the schedules."""
    counted = select(_s.status, func.count()).where(IS_THERE).group_by(_s.status)
    counts = {row[0]: row[1] for row in connection.execute(counted)}
    first = select(func.min(_s.next_run_at))
    return ScheduleSummary(counts, connection.scalars(first).one_or_none())


_LATENESS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600)
FIRE_OUTCOMES = (RunState.RUNNING, RunState.WAITING, RunState.SKIPPED, RunState.MISSED)


class ScheduleMetrics:
    """Counts the runs of this node; without `metrics`, discards the counts."""

    def __init__(self, metrics: Metrics | None = None) -> None:
        self._is_on = metrics is not None
        if metrics is None:
            return
        self._fires = metrics.counter(
            "tocsin_schedule_fires_total",
            "Fire times that this node processed, by outcome",
            "outcome",
        )
        self._lateness = metrics.histogram(
            "tocsin_schedule_lateness_seconds",
            "How late this node processed scheduled runs",
            _LATENESS,
        )
        self._failures = metrics.counter(
            "tocsin_schedule_failures_total",
            "Failed schedule runs that this node recorded, by cause",
            "cause",
        )
        self._disabled = metrics.counter(
            "tocsin_schedules_disabled_total", "Schedules that this node disabled after failures"
        )
        self._not_taken_up = metrics.counter(
            "tocsin_schedule_not_taken_up_total",
            "Schedule runs that no node claimed in time, counted by the node that notices it",
        )
        for state in FIRE_OUTCOMES:  # start at 0, or the first event would not show as an increase
            self._fires.labels(state.value).inc(0)
        for cause in FailureCause:
            self._failures.labels(cause.value).inc(0)

    def count_fires(self, fired: Iterable[FireResult]) -> None:
        """Count the results of fire times."""
        if not self._is_on:
            return
        for result in fired:
            self._fires.labels(result.state.value).inc(result.count)
            if result.state is not RunState.MISSED:
                self._lateness.observe(max(result.lateness.total_seconds(), 0))

    def count_not_taken_up(self) -> None:
        """Count a run that no node claimed in time."""
        if self._is_on:
            self._not_taken_up.inc()

    def count_ending(self, failure: RunFailure | None, *, was_disabled: bool) -> None:
        """Count the outcome of a run."""
        if self._is_on and failure is not None:
            self._failures.labels(failure.cause.value).inc()
            self._disabled.inc(was_disabled)
