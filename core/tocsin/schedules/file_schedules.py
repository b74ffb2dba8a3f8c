"""Schedules from `plugins.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection

from tocsin.errors import NameTakenError
from tocsin.recurrence import ScheduleDefinition
from tocsin.registry import ManagedBy, PlannedChange, StoredObject, name_taken_error, plan_changes
from tocsin.schedules.lifecycle import (
    change_schedule,
    create_schedule,
    disable_schedule,
    enable_schedule,
)
from tocsin.schedules.records import DisabledReason, Schedule, load_schedules
from tocsin.store import lock_exclusively

SECTION = "schedules"
FileSchedules = Mapping[str, ScheduleDefinition]


def plan_schedules(connection: Connection, wanted: FileSchedules) -> list[PlannedChange]:
    """Return the steps to apply the schedules of a file, by name.

    Raises OperatorError where a name is used by a schedule created through the API.
    """
    return _plan_steps({schedule.name: schedule for schedule in load_schedules(connection)}, wanted)


def apply_schedules(
    connection: Connection, wanted: FileSchedules, by: str, now: datetime
) -> list[PlannedChange]:
    """Apply the schedules of a file, and return the steps; raises OperatorError.

    Schedules stay enabled or disabled, except for those that are removed from the file.
    """
    lock_exclusively(connection, "applying a file")
    known = {schedule.name: schedule for schedule in load_schedules(connection, lock=True)}
    steps = _plan_steps(known, wanted)
    for step in steps:
        if step.action == "create":
            _create_from_file(connection, step.name, wanted[step.name], by, now)
        elif step.action == "disable":
            disable_schedule(connection, known[step.name], DisabledReason.REMOVED, now)
        else:
            changed = change_schedule(connection, known[step.name], wanted[step.name], now)
            if changed.is_removed:
                enable_schedule(connection, changed, now)
    return steps


def _create_from_file(
    connection: Connection, name: str, definition: ScheduleDefinition, by: str, now: datetime
) -> None:
    try:
        create_schedule(connection, name, definition, managed_by=ManagedBy.FILE, by=by, now=now)
    except NameTakenError:
        raise name_taken_error(SECTION, name) from None  # through the API, at the same time


def _plan_steps(known: Mapping[str, Schedule], wanted: FileSchedules) -> list[PlannedChange]:
    return plan_changes(
        SECTION,
        {
            name: StoredObject(schedule.managed_by, schedule.is_removed, schedule.document)
            for name, schedule in known.items()
        },
        {name: definition.as_json() for name, definition in wanted.items()},
    )
