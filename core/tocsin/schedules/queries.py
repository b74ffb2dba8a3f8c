"""Schedule and run queries and their JSON representation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import merge
from itertools import islice, takewhile
from operator import itemgetter
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, func, literal, select, tuple_

from tocsin.clock import isoformat_or_none
from tocsin.recurrence import FireTime
from tocsin.schedules.records import RunState, Schedule, ScheduleStatus, parse_schedule_row
from tocsin.store import count_matching
from tocsin.store.tables import IS_THERE, schedule_runs, schedules

SHOWN_AHEAD = 3
_r = schedule_runs.c


@dataclass(frozen=True, slots=True)
class SchedulePage:
    """One page of a list, by name."""

    schedules: Sequence[Schedule]
    total: int
    next: tuple[str, str] | None
    """The value of `after` for the next page; None on the last page."""


@dataclass(frozen=True, slots=True)
class RunPage:
    """One page of a list, the newest run first."""

    runs: Sequence[RowMapping]
    total: int
    exact: bool
    """False where there are more than `total`."""
    next: str | None
    """The value of `before` for the next page, None on the last page."""


def list_schedules(
    connection: Connection,
    *,
    limit: int,
    status: ScheduleStatus | None = None,
    tag: str | None = None,
    name: str | None = None,
    after: tuple[str, str] | None = None,
) -> SchedulePage:
    """Return a page of matching schedules; deleted ones only when filtered by that status."""
    matching = list(_build_conditions(connection, status, tag, name))
    total = connection.scalars(select(func.count()).select_from(schedules).where(*matching)).one()
    place = tuple_(schedules.c.name, schedules.c.id)
    query = select(schedules).where(*matching).order_by(schedules.c.name, schedules.c.id)
    if after is not None:
        query = query.where(place > tuple_(*map(literal, after)))
    found = [
        parse_schedule_row(row) for row in connection.execute(query.limit(limit + 1)).mappings()
    ]
    last = found[limit - 1] if found[limit:] else None
    return SchedulePage(found[:limit], total, None if last is None else (last.name, last.id))


def _build_conditions(
    connection: Connection, status: ScheduleStatus | None, tag: str | None, name: str | None
) -> Iterator[ColumnElement[bool]]:
    yield IS_THERE if status is None else schedules.c.status == status
    if name is not None:
        yield schedules.c.name == name
    if tag is not None:
        # LIKE is case-sensitive on one of the databases only
        place = func.strpos if connection.dialect.name == "postgresql" else func.instr
        yield place(schedules.c.tags, f"|{tag}|") > 0


def list_runs(
    connection: Connection,
    schedule_id: str,
    *,
    limit: int,
    state: RunState | None = None,
    before: str | None = None,
) -> RunPage:
    """Return a page of the runs of a schedule, the newest first; `before` continues a page."""
    matching = [_r.schedule_id == schedule_id]
    if state is not None:
        matching.append(_r.state == state)
    total = count_matching(connection, schedule_runs, matching)
    query = select(schedule_runs).where(*matching).order_by(_r.id.desc()).limit(limit + 1)
    if before is not None:
        query = query.where(_r.id < before)
    found = connection.execute(query).mappings().all()
    following = found[limit - 1]["id"] if found[limit:] else None
    return RunPage(found[:limit], total.count, total.exact, following)


def list_next_runs(schedule: Schedule, count: int = SHOWN_AHEAD) -> list[datetime]:
    """Return the next run times of a schedule; none for a disabled or invalid one."""
    return [fire.due for fire in islice(_iter_upcoming(schedule), count)]


def _iter_upcoming(schedule: Schedule) -> Iterator[FireTime]:
    if schedule.next_fire_at is None or not schedule.is_active:
        return iter(())
    try:
        return schedule.recurrence.since(schedule.next_fire_at)
    except ValueError:  # logged where the schedule is run
        return iter(())


def list_upcoming(
    connection: Connection, until: datetime, limit: int
) -> list[tuple[datetime, Schedule]]:
    """Return the runs due until a time, in order, each with its schedule."""
    due = schedules.c.status == ScheduleStatus.ACTIVE, schedules.c.next_run_at <= until
    # The earliest runs belong to the schedules that are due first
    first = select(schedules).where(*due).order_by(schedules.c.next_run_at).limit(limit)
    rows = connection.execute(first).mappings()
    times = (_iter_times(parse_schedule_row(row), until) for row in rows)
    in_order = merge(*times, key=itemgetter(0))
    return list(islice(in_order, limit))


def _iter_times(schedule: Schedule, until: datetime) -> Iterator[tuple[datetime, Schedule]]:
    fires = _iter_upcoming(schedule)
    return ((fire.due, schedule) for fire in takewhile(lambda fire: fire.due <= until, fires))


_MOMENTS = ("last_run_at", "next_run_at", "created_at", "updated_at")
_RUN = ("id", "schedule_id", "trigger", "state", "count", "session_id", "cause", "reason")
_RUN_MOMENTS = ("fire_at", "due_at", "until", "started_at", "ended_at")


def build_schedule_url(public_url: str, schedule_id: str) -> str:
    """Return the URL of a schedule in the console."""
    return f"{public_url}/schedules/{schedule_id}"


def represent_schedule(schedule: Schedule, public_url: str) -> dict[str, Any]:
    """Return the JSON of a schedule."""
    return {
        "id": schedule.id,
        "name": schedule.name,
        "managed_by": schedule.managed_by.value,
        **schedule.document,
        "status": schedule.status.value,
        "disabled_reason": schedule.disabled_reason and schedule.disabled_reason.value,
        "consecutive_failures": schedule.consecutive_failures,
        "last_status": schedule.last_status and schedule.last_status.value,
        "last_error": schedule.last_error,
        **{name: isoformat_or_none(getattr(schedule, name)) for name in _MOMENTS},
        "revision": schedule.revision,
        "created_by": schedule.created_by,
        "url": build_schedule_url(public_url, schedule.id),
    }


def represent_run(row: RowMapping) -> dict[str, Any]:
    """Return the JSON of a run."""
    begun, ended = row["started_at"], row["ended_at"]
    taken = None if begun is None or ended is None else ended - begun
    return {
        **{name: row[name] for name in _RUN},
        **{name: isoformat_or_none(row[name]) for name in _RUN_MOMENTS},
        "duration_ms": None if taken is None else taken // timedelta(milliseconds=1),
        "created_by": row["created_by"],
    }
