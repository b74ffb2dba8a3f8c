"""Schedule lifecycle: create, change, enable, disable, delete."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, update

from tocsin.errors import NameTakenError
from tocsin.identifiers import new_id
from tocsin.recurrence import ScheduleDefinition
from tocsin.registry import ManagedBy
from tocsin.schedules.records import SCHEDULES, DisabledReason, Schedule, ScheduleStatus, to_columns
from tocsin.schedules.runs import record_missed_runs, skip_waiting_runs, trim_missed_runs
from tocsin.store import announce, build_insert
from tocsin.store.tables import schedules

_TIMING = ("cron", "interval", "timezone", "jitter", "starts_at", "ends_at")


def create_schedule(
    connection: Connection,
    name: str,
    definition: ScheduleDefinition,
    *,
    managed_by: ManagedBy,
    by: str,
    now: datetime,
) -> Schedule:
    """Create a schedule that runs from now on, and return it; raises NameTakenError."""
    made = Schedule(
        id=new_id("sch"),
        name=name,
        managed_by=managed_by,
        document=definition.as_json(),
        anchor_at=now,
        created_by=by,
        created_at=now,
        updated_at=now,
    )
    timed = _plan_next_run(made, now)
    statement = build_insert(connection, schedules).values(to_columns(timed))
    if not connection.execute(statement.on_conflict_do_nothing()).rowcount:
        raise NameTakenError(name)
    announce(connection, SCHEDULES)
    return timed


def change_schedule(
    connection: Connection, schedule: Schedule, definition: ScheduleDefinition, now: datetime
) -> Schedule:
    """Change the definition of a schedule, and return it, unchanged for an equal definition.

    It stays enabled or disabled. It must have been read and locked in this transaction.
    """
    document = definition.as_json()
    if document == schedule.document:
        return schedule
    changed = replace(schedule, document=document)
    if any(document[name] != schedule.document.get(name) for name in _TIMING):
        record_missed_runs(connection, schedule, now, "the schedule was changed before the run")
        if document["interval"] != schedule.document.get("interval"):
            changed = replace(changed, anchor_at=now)
        changed = _plan_next_run(changed, now)
    return _store_schedule(connection, changed, now)


def enable_schedule(connection: Connection, schedule: Schedule, now: datetime) -> Schedule:
    """Enable a schedule from now on, reset its failures, and return it.

    An enabled schedule is unchanged, unless its next run is wrong, as after a clock that was
    ahead. It must have been read and locked in this transaction.
    """
    trim_missed_runs(connection, schedule, now)
    if schedule.is_active:
        planned = _plan_next_run(schedule, now)
        is_ahead = schedule.next_fire_at != planned.next_fire_at and not _is_due(schedule, now)
        return _store_schedule(connection, planned, now) if is_ahead else schedule
    active = replace(
        schedule, status=ScheduleStatus.ACTIVE, disabled_reason=None, consecutive_failures=0
    )
    return _store_schedule(connection, _plan_next_run(active, now), now)


def disable_schedule(
    connection: Connection, schedule: Schedule, reason: DisabledReason, now: datetime
) -> Schedule:
    """Disable a schedule until it is enabled again, and return it.

    A run in progress continues. It must have been read and locked in this transaction.
    """
    disabled = replace(schedule, status=ScheduleStatus.DISABLED, disabled_reason=reason)
    return disabled if schedule == disabled else _stop_schedule(connection, schedule, disabled, now)


def delete_schedule(connection: Connection, schedule: Schedule, now: datetime) -> Schedule:
    """Delete a schedule and return it; its runs are kept, and its name becomes available."""
    deleted = replace(schedule, status=ScheduleStatus.DELETED, disabled_reason=None)
    return _stop_schedule(connection, schedule, deleted, now)


def _stop_schedule(
    connection: Connection, before: Schedule, after: Schedule, now: datetime
) -> Schedule:
    record_missed_runs(connection, before, now, f"the schedule was {after.status} before the run")
    skip_waiting_runs(connection, after.id, f"the schedule was {after.status}", now)
    return _store_schedule(connection, replace(after, next_fire_at=None, next_run_at=None), now)


def _is_due(schedule: Schedule, now: datetime) -> bool:
    """Return whether its next fire time has passed, even if the jitter has not."""
    return schedule.next_fire_at is not None and schedule.next_fire_at <= now


def _plan_next_run(schedule: Schedule, now: datetime) -> Schedule:
    """Return the schedule with its next run, if it is active."""
    following = schedule.recurrence.next(now) if schedule.is_active else None
    at, due = (following.at, following.due) if following else (None, None)
    return replace(schedule, next_fire_at=at, next_run_at=due)


def _store_schedule(connection: Connection, schedule: Schedule, now: datetime) -> Schedule:
    stored = replace(schedule, revision=schedule.revision + 1, updated_at=now)
    row = update(schedules).where(schedules.c.id == stored.id)
    connection.execute(row.values(to_columns(stored)))
    announce(connection, SCHEDULES)
    return stored
