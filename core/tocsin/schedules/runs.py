"""The runs of schedules: one row for each fire time, begun, ended or left out.

Whoever writes here holds the row of the schedule, so that what is read of its runs stays so.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import structlog
from sqlalchemy import Connection, RowMapping, insert, select, tuple_, update

from tocsin.events import new_id
from tocsin.recurrence import FireTime
from tocsin.schedules.records import RunState, Schedule, Trigger
from tocsin.store.tables import IS_BY_CLOCK, IS_UNENDED, schedule_runs

OWNER = "schedules"
"""Whose sessions those of the clock are: together they get one caller's share of the nodes."""
_r = schedule_runs.c
_log = structlog.get_logger()


def run_row(
    schedule_id: str, fire: FireTime, trigger: Trigger, by: str, **members: Any
) -> dict[str, Any]:
    """Return a run as its row."""
    nothing = ("until", "session_id", "started_at", "begin_by", "ended_at", "cause", "reason")
    return {
        "id": new_id("run"),
        "schedule_id": schedule_id,
        "trigger": trigger,
        "fire_at": fire.at,
        "due_at": fire.due,
        "count": 1,
        "created_by": by,
        **dict.fromkeys(nothing),
        **members,
    }


def missed_row(
    schedule: Schedule, count: int, until: datetime | None, reason: str, now: datetime
) -> dict[str, Any]:
    """Return the row that says that the next run of a schedule was missed, and those up to `until`.

    `until` is None where it is that one alone.
    """
    at, due = schedule.next_fire_at, schedule.next_run_at
    assert at is not None and due is not None  # noqa: S101, PT018 - something was due
    members = {"state": RunState.MISSED, "reason": reason, "ended_at": now}
    fire = FireTime(at, due)
    return run_row(schedule.id, fire, Trigger.CLOCK, OWNER, count=count, until=until, **members)


def insert_runs(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Store new runs."""
    if rows:
        connection.execute(insert(schedule_runs), list(rows))


def change_run(connection: Connection, run_id: str, values: dict[str, Any]) -> None:
    """Store what is new of a run."""
    connection.execute(update(schedule_runs).where(_r.id == run_id).values(values))


def leave_out_waiting(connection: Connection, schedule_id: str, reason: str, now: datetime) -> None:
    """Skip every run of a schedule that waits."""
    waiting = _r.schedule_id == schedule_id, IS_UNENDED, _r.state == RunState.WAITING
    values = {"state": RunState.SKIPPED, "reason": reason, "ended_at": now}
    connection.execute(update(schedule_runs).where(*waiting).values(values))


def note_missed(connection: Connection, schedule: Schedule, now: datetime, reason: str) -> None:
    """Record what was due by now and was not run, before that is forgotten."""
    if schedule.next_fire_at is None:
        return
    try:
        past = schedule.recurrence.past(schedule.next_fire_at, now)
    except ValueError:
        _log.exception("what was missed cannot be told", schedule=schedule.id)
        return
    if past.latest is None or recorded(connection, [(schedule.id, schedule.next_fire_at)]):
        return
    until = past.latest.at if past.earlier else None
    insert_runs(connection, [missed_row(schedule, past.earlier + 1, until, reason, now)])


def recorded(
    connection: Connection, times: Sequence[tuple[str, datetime]]
) -> set[tuple[str, datetime]]:
    """Return those fire times of schedules of which something became already.

    As when a clock was set back.
    """
    query = select(_r.schedule_id, _r.fire_at).where(
        tuple_(_r.schedule_id, _r.fire_at).in_(times), IS_BY_CLOCK
    )
    return {(row.schedule_id, row.fire_at) for row in connection.execute(query)}


def running_of(connection: Connection, session_id: str) -> RowMapping | None:
    """Return the run that is under way in a session, None where there is none."""
    query = select(schedule_runs).where(_r.session_id == session_id, _r.state == RunState.RUNNING)
    return connection.execute(query).mappings().one_or_none()


def unended(connection: Connection, schedule_ids: Sequence[str]) -> dict[str, list[RowMapping]]:
    """Return the runs of schedules that are under way or wait, the one under way first."""
    query = select(_r.id, _r.schedule_id, _r.state, _r.session_id, _r.created_by)
    these = query.where(_r.schedule_id.in_(schedule_ids), IS_UNENDED).order_by(_r.id)
    found: dict[str, list[RowMapping]] = {schedule_id: [] for schedule_id in schedule_ids}
    for row in connection.execute(these).mappings():
        place = 0 if row["state"] == RunState.RUNNING else len(found[row["schedule_id"]])
        found[row["schedule_id"]].insert(place, row)
    return found
