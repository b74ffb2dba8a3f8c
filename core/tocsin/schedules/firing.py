"""Beginning the runs that are due: once for each fire time, however many nodes look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import Connection, RowMapping, Select, bindparam, select, update

from tocsin.errors import CallerError
from tocsin.recurrence import FireTime, Overlap, Past
from tocsin.schedules.beginning import BROKEN, Wanted, begin_runs
from tocsin.schedules.records import RunState, Schedule, ScheduleStatus, Trigger, schedule_of
from tocsin.schedules.runs import OWNER, insert_runs, missed_row, recorded, unended
from tocsin.store.tables import schedule_runs, schedules

AT_ONCE = 100
"""So many schedules are begun in one transaction, which others wait for."""
TOO_LATE = "nobody was there to begin it in time"
_s = schedules.c
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Fired:
    """What became of one fire time, or of several that were missed."""

    schedule_id: str
    state: RunState
    count: int
    lateness: timedelta
    """How long after it was due that was settled."""


@dataclass(frozen=True, slots=True)
class Due:
    """A schedule of which something is due."""

    schedule: Schedule
    past: Past
    latest: FireTime
    now: datetime

    @property
    def is_in_time(self) -> bool:
        """Whether the latest fire time is to be run, or is too late."""
        return self.now - self.latest.due <= self.schedule.definition.misfire_grace

    def missed(self) -> dict[str, Any] | None:
        """Return the row of what was missed, None where nothing was."""
        earlier, latest = self.past.earlier, self.latest.at
        count, until = (earlier, self.past.until) if self.is_in_time else (earlier + 1, latest)
        if not count:
            return None
        return missed_row(self.schedule, count, until if count > 1 else None, TOO_LATE, self.now)


def is_anything_due(connection: Connection, now: datetime) -> bool:
    """Return whether some schedule is due."""
    return connection.execute(_due(now).with_only_columns(_s.id).limit(1)).first() is not None


def fire_due(connection: Connection, now: datetime, most: int = AT_ONCE) -> list[Fired]:
    """Begin what is due, of so many schedules at most, and return what became of it.

    What another node has in hand is left to it.
    """
    held = _due(now).limit(most).with_for_update(skip_locked=True)
    rows = connection.execute(held).mappings().all()
    looked_at = [it for row in rows if (it := _look(connection, row, now)) is not None]
    due = [Due(it, past, past.latest, now) for it, past in looked_at if past.latest is not None]
    fired = _settle(connection, due, now)
    _advance(connection, looked_at)
    return fired


def _due(now: datetime) -> Select[Any]:
    is_due = _s.status == ScheduleStatus.ACTIVE, _s.next_run_at <= now
    return select(schedules).where(*is_due).order_by(_s.next_run_at)


def _look(connection: Connection, row: RowMapping, now: datetime) -> tuple[Schedule, Past] | None:
    """Return what of a schedule is due; None after noting that this cannot be told."""
    schedule = schedule_of(row)
    try:
        return schedule, schedule.recurrence.past(row["next_fire_at"], now)
    except ValueError as error:  # such as of a time zone that there is no more
        _log.exception("a schedule cannot be run", schedule=schedule.id)
        nothing = {"next_fire_at": None, "next_run_at": None}
        broken = update(schedules).where(_s.id == schedule.id)
        connection.execute(broken.values(**nothing, last_error=f"{BROKEN}: {error}"))
        return None


def _settle(connection: Connection, due: Sequence[Due], now: datetime) -> list[Fired]:
    """Begin the latest fire time where that is not too late, and record all others as missed."""
    if not due:
        return []
    missed = [row for it in due if (row := it.missed()) is not None]
    in_time = [it for it in due if it.is_in_time]
    times = [(row["schedule_id"], row["fire_at"]) for row in missed]
    known = recorded(connection, times + [(it.schedule.id, it.latest.at) for it in in_time])
    missed = [row for row in missed if (row["schedule_id"], row["fire_at"]) not in known]
    insert_runs(connection, missed)
    wanted = [
        Wanted(it.schedule, it.latest, Trigger.CLOCK, OWNER)
        for it in in_time
        if (it.schedule.id, it.latest.at) not in known
    ]
    rows = [*missed, *begin_runs(connection, wanted, now)]
    return [
        Fired(row["schedule_id"], row["state"], row["count"], now - row["due_at"]) for row in rows
    ]


_next = (
    update(schedules)
    .where(_s.id == bindparam("its_id"))
    .values(next_fire_at=bindparam("at"), next_run_at=bindparam("due"))
)


def _advance(connection: Connection, looked_at: Sequence[tuple[Schedule, Past]]) -> None:
    values = [
        {
            "its_id": schedule.id,
            "at": None if past.following is None else past.following.at,
            "due": None if past.following is None else past.following.due,
        }
        for schedule, past in looked_at
    ]
    if values:
        connection.execute(_next, values)


def run_now(connection: Connection, schedule: Schedule, by: str, now: datetime) -> RowMapping:
    """Run a schedule once more, now, whether it is enabled or not, and return the run's row.

    CallerError (409) where it is deleted, or is under way and overlapping runs are skipped. It
    must have been read in this transaction, locked.
    """
    if schedule.status is ScheduleStatus.DELETED:
        raise CallerError(409, "The schedule was deleted; create it anew.")
    skips = schedule.definition.overlap is Overlap.SKIP
    if skips and unended(connection, [schedule.id])[schedule.id]:
        raise CallerError(409, "A run of this schedule is under way; wait for it, or cancel it.")
    wanted = Wanted(schedule, FireTime(now, now), Trigger.MANUAL, by)
    [row] = begin_runs(connection, [wanted], now)
    stored = select(schedule_runs).where(schedule_runs.c.id == row["id"])
    return connection.execute(stored).mappings().one()
