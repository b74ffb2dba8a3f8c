"""Due schedules: one run for each fire time, on any number of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import Connection, RowMapping, Select, bindparam, select, update

from tocsin.errors import ConflictError
from tocsin.recurrence import FireTime, PastFireTimes
from tocsin.schedules.admission import (
    RunRequest,
    decide_admission,
    describe_invalid_definition,
    start_runs,
)
from tocsin.schedules.records import RunState, Schedule, ScheduleStatus, Trigger, parse_schedule_row
from tocsin.schedules.runs import (
    OWNER,
    build_missed_row,
    choose_start,
    insert_runs,
    load_open_runs,
    select_accounted_until,
)
from tocsin.store.tables import schedule_runs, schedules

BATCH_SIZE = 100
"""The number of schedules started in one transaction."""
RETRY_INTERVAL = timedelta(minutes=1)
"""The interval at which an invalid schedule is tried again."""
REASON_TOO_LATE = "no node was running at the time"
REASON_SUPERSEDED = "a later run was also due"
_s = schedules.c
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class FireResult:
    """Result of one fire time, or of several that were missed."""

    schedule_id: str
    state: RunState
    count: int
    lateness: timedelta
    """The delay after the due time."""


@dataclass(frozen=True, slots=True)
class DueSchedule:
    """A schedule with due fire times."""

    schedule: Schedule
    past: PastFireTimes
    now: datetime

    @property
    def to_run(self) -> FireTime | None:
        """The latest fire time, unless it is too late to run."""
        latest = self.past.latest
        if latest is None or self.now - latest.due > self.schedule.definition.misfire_grace:
            return None
        return latest

    def missed(self) -> dict[str, Any] | None:
        """Return the row of the missed fire times, None without any."""
        late = self.to_run is None
        reason = REASON_TOO_LATE if late else REASON_SUPERSEDED
        return build_missed_row(
            self.schedule, self.past, with_latest=late, reason=reason, now=self.now
        )


def is_anything_due(connection: Connection, now: datetime) -> bool:
    """Return whether any schedule is due."""
    return (
        connection.execute(select(_s.id).where(_s.next_run_at <= now).limit(1)).first() is not None
    )


def fire_due(connection: Connection, now: datetime, most: int = BATCH_SIZE) -> list[FireResult]:
    """Start the due runs of up to `most` schedules, and return the results.

    Schedules locked by another node are left to it.
    """
    held = _select_due(now).limit(most).with_for_update(skip_locked=True, of=schedules)
    rows = connection.execute(held).mappings().all()
    loaded = (_load_due(connection, row, now) for row in rows)
    due = [due_schedule for due_schedule in loaded if due_schedule is not None]
    missed = [row for row in (due_schedule.missed() for due_schedule in due) if row is not None]
    insert_runs(connection, missed)
    wanted = [
        RunRequest(due_schedule.schedule, fire, Trigger.CLOCK, OWNER)
        for due_schedule in due
        if (fire := due_schedule.to_run) is not None
    ]
    settled = [*missed, *start_runs(connection, wanted, now)]
    _store_next_fire_times(connection, due)
    return [
        FireResult(row["schedule_id"], row["state"], row["count"], now - row["due_at"])
        for row in settled
    ]


def _select_due(now: datetime) -> Select[Any]:
    """Return the query of due schedules; only active ones have a next run."""
    accounted = select_accounted_until(_s.id, now).label("accounted_until")
    return select(schedules, accounted).where(_s.next_run_at <= now).order_by(_s.next_run_at)


def _load_due(connection: Connection, row: RowMapping, now: datetime) -> DueSchedule | None:
    """Return the due fire times of a schedule; None for an invalid one, which is postponed.

    Another node, or this one after an update, may be able to run it, and records what was missed.
    """
    schedule = parse_schedule_row(row)
    begin = choose_start(row["next_fire_at"], row["accounted_until"])
    try:
        return DueSchedule(schedule, schedule.recurrence.past(begin, now), now)
    except ValueError as error:  # such as a time zone that no longer exists
        reason = describe_invalid_definition(error)
        _log.error("invalid schedule", schedule=schedule.name, reason=reason)
        put_off = update(schedules).where(_s.id == schedule.id)
        connection.execute(put_off.values(next_run_at=now + RETRY_INTERVAL, last_error=reason))
        return None


_next = (
    update(schedules)
    .where(_s.id == bindparam("its_id"))
    .values(next_fire_at=bindparam("at"), next_run_at=bindparam("due"))
)


def _store_next_fire_times(connection: Connection, handled: Sequence[DueSchedule]) -> None:
    values = [
        {
            "its_id": due.schedule.id,
            "at": None if due.past.following is None else due.past.following.at,
            "due": None if due.past.following is None else due.past.following.due,
        }
        for due in handled
    ]
    if values:
        connection.execute(_next, values)


class ScheduleDeletedError(ConflictError):
    """The schedule was deleted."""

    def __init__(self) -> None:
        super().__init__("The schedule was deleted; create a new one.")


class ScheduleNotStartedError(ConflictError):
    """The schedule cannot run now; the text says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The schedule was not started: {reason}.")


def run_now(connection: Connection, schedule: Schedule, by: str, now: datetime) -> RowMapping:
    """Run a schedule now, enabled or not, and return the row of the run.

    Raises ScheduleDeletedError, and ScheduleNotStartedError where the run would be skipped. The
    schedule must have been read and locked in this transaction.
    """
    if schedule.status is ScheduleStatus.DELETED:
        raise ScheduleDeletedError
    _, reason = decide_admission(schedule, load_open_runs(connection, [schedule.id])[schedule.id])
    if reason is not None:
        raise ScheduleNotStartedError(reason)
    wanted = RunRequest(schedule, FireTime(now, now), Trigger.MANUAL, by)
    [row] = start_runs(connection, [wanted], now)
    stored = select(schedule_runs).where(schedule_runs.c.id == row["id"])
    return connection.execute(stored).mappings().one()
