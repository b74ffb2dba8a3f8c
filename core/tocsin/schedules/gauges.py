"""What the database says of schedules, as gauges: the same on every node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import nan

from sqlalchemy import Connection, func, select

from tocsin.clock import Clock
from tocsin.metrics import Metrics
from tocsin.schedules.records import ScheduleStatus
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
