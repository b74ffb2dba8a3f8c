"""Schedules and their runs, as the database has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import orjson
from sqlalchemy import Connection, RowMapping, select

from tocsin.model import Vocabulary
from tocsin.recurrence import Recurrence, ScheduleDefinition
from tocsin.registry import ManagedBy
from tocsin.store.tables import IS_THERE, schedules

SCHEDULES = "schedules"
"""The topic of schedules that were created, changed, enabled, disabled or deleted."""


class ScheduleStatus(Vocabulary):
    """Status of a schedule."""

    ACTIVE = "active"
    DISABLED = "disabled"
    DELETED = "deleted"


class DisabledReason(Vocabulary):
    """Reason why a schedule is disabled."""

    MANUAL = "manual"
    FAILURES = "consecutive_failures"
    REMOVED = "removed-from-file"


class Trigger(Vocabulary):
    """Trigger of a run."""

    CLOCK = "clock"
    MANUAL = "manual"


class RunState(Vocabulary):
    """State of a run or a fire time."""

    WAITING = "waiting"
    """It starts when the previous run has ended."""
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    """Its session was cancelled, which counts neither as a failure nor as a success."""
    SKIPPED = "skipped"
    """It was not started: the previous run was in progress, or the schedule was stopped."""
    MISSED = "missed"
    """No node was running when it was due, and later it was too late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One schedule."""

    id: str
    name: str
    managed_by: ManagedBy
    document: Mapping[str, Any]
    """The definition as JSON."""
    status: ScheduleStatus = ScheduleStatus.ACTIVE
    disabled_reason: DisabledReason | None = None
    revision: int = 1
    """Incremented whenever the schedule is changed, enabled or disabled."""
    anchor_at: datetime
    next_fire_at: datetime | None = None
    next_run_at: datetime | None = None
    """The same with jitter; both are None where no run follows."""
    consecutive_failures: int = 0
    last_run_at: datetime | None = None
    last_status: RunState | None = None
    last_error: str | None = None
    created_by: str
    created_at: datetime
    updated_at: datetime

    @property
    def definition(self) -> ScheduleDefinition:
        """The definition; raises ValueError where the stored one is no longer valid."""
        return _parse_definition(orjson.dumps(self.document))

    @property
    def recurrence(self) -> Recurrence:
        """The recurrence; raises ValueError like `definition`."""
        return Recurrence(self.definition, self.id, self.anchor_at)

    @property
    def is_active(self) -> bool:
        """Whether the schedule is enabled."""
        return self.status is ScheduleStatus.ACTIVE

    @property
    def is_removed(self) -> bool:
        """Whether it was disabled after its removal from `plugins.toml`."""
        return self.disabled_reason is DisabledReason.REMOVED


@lru_cache(maxsize=20_000)
def _parse_definition(document: bytes) -> ScheduleDefinition:
    return ScheduleDefinition.model_validate_json(document)


def load_schedule(
    connection: Connection, schedule_id: str, *, lock: bool = False
) -> Schedule | None:
    """Return a schedule, even a deleted one; None for an unknown ID.

    With `lock`, no other transaction can change or run it until this one ends.
    """
    query = select(schedules).where(schedules.c.id == schedule_id)
    row = connection.execute(query.with_for_update() if lock else query).mappings().one_or_none()
    return None if row is None else parse_schedule_row(row)


def load_schedules(connection: Connection, *, lock: bool = False) -> list[Schedule]:
    """Return all schedules that are not deleted, by name."""
    query = select(schedules).where(IS_THERE).order_by(schedules.c.name)
    rows = connection.execute(query.with_for_update() if lock else query).mappings()
    return [parse_schedule_row(row) for row in rows]


def parse_schedule_row(row: RowMapping) -> Schedule:
    """Return the schedule in a row of the table `schedules`."""
    members = {name: row[name] for name in Schedule.__dataclass_fields__ if name in row}
    reason, last = row["disabled_reason"], row["last_status"]
    return Schedule(
        **members
        | {
            "managed_by": ManagedBy(row["managed_by"]),
            "document": row["definition"],
            "status": ScheduleStatus(row["status"]),
            "disabled_reason": reason and DisabledReason(reason),
            "last_status": last and RunState(last),
        }
    )


def to_columns(schedule: Schedule) -> dict[str, Any]:
    """Return the columns of a schedule."""
    columns = {name: getattr(schedule, name) for name in Schedule.__dataclass_fields__}
    document = dict(columns.pop("document"))
    tags = "".join(f"|{tag}" for tag in document.get("tags", ()))
    return columns | {"definition": document, "tags": f"{tags}|"}
