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
    """How schedules are."""

    counts: Mapping[str, int]
    """How many there are of each status."""
    due_at: datetime | None
    """When the next of them is due, or was."""


class ScheduleGauges:
    """How many schedules there are, and how late the latest of them is."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._clock = clock
        self._count = metrics.gauge("tocsin_schedules", "Schedules, by whether they run", "status")
        self._overdue = metrics.gauge(
            "tocsin_schedules_overdue_seconds",
            "For how long the schedule that is due longest has been; 0 where none is",
        )

    def show(self, standing: ScheduleSummary) -> None:
        """Show this."""
        for status in _STATUSES:
            self._count.labels(status.value).set(standing.counts.get(status, 0))
        due_at = standing.due_at
        overdue = 0 if due_at is None else (self._clock.now() - due_at).total_seconds()
        self._overdue.set(max(overdue, 0))

    def clear(self) -> None:
        """Show nothing: it is not known."""
        self._count.clear()
        self._overdue.set(nan)


def load_summary(connection: Connection) -> ScheduleSummary:
    """Return how schedules are."""
    counted = select(_s.status, func.count()).where(IS_THERE).group_by(_s.status)
    counts = {row[0]: row[1] for row in connection.execute(counted)}
    first = select(func.min(_s.next_run_at))
    return ScheduleSummary(counts, connection.scalars(first).one_or_none())


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
