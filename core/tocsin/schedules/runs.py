"""Schedule run records: one row per fire time, whether run, skipped or missed.

Writers lock the row of the schedule first, so that its runs do not change meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    ScalarSelect,
    func,
    insert,
    select,
    update,
)

from tocsin.identifiers import new_id
from tocsin.recurrence import FireTime, PastFireTimes
from tocsin.schedules.records import RunState, Schedule, Trigger
from tocsin.store.tables import IS_BY_CLOCK, IS_UNENDED, schedule_runs

OWNER = "schedules"
"""The owner of clock-triggered sessions, which together get the share of one caller."""
_r = schedule_runs.c
_log = structlog.get_logger()


def build_run_row(
    schedule_id: str, fire: FireTime, trigger: Trigger, by: str, **members: Any
) -> dict[str, Any]:
    """Build the row of a run."""
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


def build_missed_row(
    schedule: Schedule, past: PastFireTimes, *, with_latest: bool, reason: str, now: datetime
) -> dict[str, Any] | None:
    """Build the row of the missed runs, with or without the latest; None without any."""
    first, latest = past.first, past.latest
    count = past.earlier + with_latest
    if first is None or latest is None or not count:
        return None
    until = latest.at if with_latest else past.until
    members = {"state": RunState.MISSED, "reason": reason, "ended_at": now, "count": count}
    return build_run_row(
        schedule.id, first, Trigger.CLOCK, OWNER, until=until if count > 1 else None, **members
    )


def insert_runs(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Store new runs."""
    if rows:
        connection.execute(insert(schedule_runs), list(rows))


def update_run(connection: Connection, run_id: str, values: dict[str, Any]) -> None:
    """Update a run."""
    connection.execute(update(schedule_runs).where(_r.id == run_id).values(values))


def skip_waiting_runs(connection: Connection, schedule_id: str, reason: str, now: datetime) -> None:
    """Skip all waiting runs of a schedule."""
    waiting = _r.schedule_id == schedule_id, IS_UNENDED, _r.state == RunState.WAITING
    values = {"state": RunState.SKIPPED, "reason": reason, "ended_at": now}
    connection.execute(update(schedule_runs).where(*waiting).values(values))


def record_missed_runs(
    connection: Connection, schedule: Schedule, now: datetime, reason: str
) -> None:
    """Record passed fire times that were not run, including those delayed by jitter."""
    if schedule.next_fire_at is None:
        return
    accounted = connection.scalars(select(select_accounted_until(schedule.id, now))).one()
    try:
        past = schedule.recurrence.without_jitter().past(
            choose_start(schedule.next_fire_at, accounted), now
        )
    except ValueError:
        _log.exception("missed runs not determined", schedule=schedule.id)
        return
    row = build_missed_row(schedule, past, with_latest=True, reason=reason, now=now)
    insert_runs(connection, [row] if row else [])


def trim_missed_runs(connection: Connection, schedule: Schedule, now: datetime) -> None:
    """Remove future fire times from missed runs, after a clock that was ahead."""
    ahead = _r.schedule_id == schedule.id, IS_BY_CLOCK, _r.fire_at <= now, _r.until > now
    for row in connection.execute(select(_r.id, _r.fire_at).where(*ahead)).all():
        past = schedule.recurrence.without_jitter().past(row.fire_at, now)
        until = past.latest.at if past.latest and past.earlier else None
        update_run(connection, row.id, {"count": past.earlier + 1, "until": until})


def select_accounted_until(
    schedule_id: str | ColumnElement[str], now: datetime
) -> ScalarSelect[datetime | None]:
    """Return the query of the last handled fire time by `now`.

    A clock that was set back may reach it again. Fire times after `now` are excluded: after a clock
    that was ahead, they would otherwise stop the schedule until then.
    """
    last = func.coalesce(_r.until, _r.fire_at, type_=_r.fire_at.type)
    by_clock = select(last).where(_r.schedule_id == schedule_id, IS_BY_CLOCK, _r.fire_at <= now)
    return by_clock.order_by(_r.fire_at.desc()).limit(1).scalar_subquery()


def choose_start(next_fire_at: datetime, accounted: datetime | None) -> datetime:
    """Return the first time for which fire times have not been handled."""
    if accounted is None or accounted < next_fire_at:
        return next_fire_at
    return accounted + timedelta(microseconds=1)


def find_running_run(connection: Connection, session_id: str) -> RowMapping | None:
    """Return the run in progress in a session, or None if there is none."""
    query = select(schedule_runs).where(_r.session_id == session_id, _r.state == RunState.RUNNING)
    return connection.execute(query).mappings().one_or_none()


def load_open_runs(
    connection: Connection, schedule_ids: Sequence[str]
) -> dict[str, list[RowMapping]]:
    """Return the running and waiting runs of schedules, the running one first."""
    query = select(_r.id, _r.schedule_id, _r.state, _r.session_id, _r.created_by)
    these = query.where(_r.schedule_id.in_(schedule_ids), IS_UNENDED).order_by(_r.id)
    found: dict[str, list[RowMapping]] = {schedule_id: [] for schedule_id in schedule_ids}
    for row in connection.execute(these).mappings():
        place = 0 if row["state"] == RunState.RUNNING else len(found[row["schedule_id"]])
        found[row["schedule_id"]].insert(place, row)
    return found
