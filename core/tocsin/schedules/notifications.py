"""Events about scheduled runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from tocsin.identifiers import new_id
from tocsin.model import Event, EventType, Json, Report
from tocsin.reports import to_json
from tocsin.schedules.queries import build_schedule_url, represent_schedule
from tocsin.schedules.records import Schedule

_COMPLETED = ("title", "risk_score", "entity_count", "finding_count", "url")


def build_completed_event(
    schedule: Schedule, session: Mapping[str, Any], report: Report, public_url: str, now: datetime
) -> Event:
    """Build the `investigation-completed` event of a run, given the JSON of its session."""
    return Event(
        id=new_id("evt"),
        event_type=EventType.INVESTIGATION_COMPLETED,
        timestamp=now,
        data={**_build_run_data(schedule, session), **{name: session[name] for name in _COMPLETED}},
        subject=f"session:{session['id']}",
        related=(f"schedule:{schedule.id}", *(f"incident:{number}" for number in report.about)),
        context=_build_context(schedule, public_url, session) | {"report": to_json(report)},
    )


def build_failed_event(
    schedule: Schedule, session: Mapping[str, Any], public_url: str, now: datetime
) -> Event:
    """Build the `investigation-failed` event of a run that is already counted as a failure."""
    failures = schedule.consecutive_failures
    return Event(
        id=new_id("evt"),
        event_type=EventType.INVESTIGATION_FAILED,
        timestamp=now,
        data={
            **_build_run_data(schedule, session),
            "error": session["error"],
            "consecutive_failures": failures,
            "url": build_schedule_url(public_url, schedule.id),
        },
        subject=f"schedule:{schedule.id}",
        related=(f"session:{session['id']}",),
        context=_build_context(schedule, public_url, session),
    )


def build_disabled_event(schedule: Schedule, public_url: str, now: datetime) -> Event:
    """Build the `schedule-disabled` event after too many consecutive failures.

    Its timestamp is a millisecond after that of the failure, since receivers order events by time.
    """
    return Event(
        id=new_id("evt"),
        event_type=EventType.SCHEDULE_DISABLED,
        timestamp=now + timedelta(milliseconds=1),
        data={
            "schedule_id": schedule.id,
            "schedule_name": schedule.name,
            "reason": schedule.disabled_reason and schedule.disabled_reason.value,
            "consecutive_failures": schedule.consecutive_failures,
            "last_error": schedule.last_error,
            "url": build_schedule_url(public_url, schedule.id),
        },
        subject=f"schedule:{schedule.id}",
        context=_build_context(schedule, public_url),
    )


def _build_run_data(schedule: Schedule, session: Mapping[str, Any]) -> dict[str, Json]:
    return {
        "session_id": session["id"],
        "schedule_id": schedule.id,
        "schedule_name": schedule.name,
    }


def _build_context(
    schedule: Schedule, public_url: str, session: Mapping[str, Any] | None = None
) -> dict[str, Json]:
    data = {"schedule": represent_schedule(schedule, public_url)}
    return data if session is None else data | {"session": dict(session)}
