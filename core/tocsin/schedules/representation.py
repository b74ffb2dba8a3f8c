"""Schedules and their runs as the API and the events show them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import RowMapping

from tocsin.clock import isoformat_or_none
from tocsin.schedules.records import Schedule

_MOMENTS = ("last_run_at", "next_run_at", "created_at", "updated_at")
_RUN = ("id", "schedule_id", "trigger", "state", "count", "session_id", "cause", "reason")
_RUN_MOMENTS = ("fire_at", "due_at", "until", "started_at", "ended_at")


def build_schedule_url(public_url: str, schedule_id: str) -> str:
    """Return where the console shows a schedule."""
    return f"{public_url}/schedules/{schedule_id}"


def represent_schedule(schedule: Schedule, public_url: str) -> dict[str, Any]:
    """Return a schedule as lists show it."""
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
    """Return a run as it is shown."""
    begun, ended = row["started_at"], row["ended_at"]
    taken = None if begun is None or ended is None else ended - begun
    return {
        **{name: row[name] for name in _RUN},
        **{name: isoformat_or_none(row[name]) for name in _RUN_MOMENTS},
        "duration_ms": None if taken is None else taken // timedelta(milliseconds=1),
        "created_by": row["created_by"],
    }
