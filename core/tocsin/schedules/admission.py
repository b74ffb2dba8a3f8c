"""Admission of runs: start, queue or skip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, RowMapping, update

from tocsin.investigations import NewSession, create_sessions
from tocsin.recurrence import FireTime, Overlap, ScheduleDefinition
from tocsin.schedules.records import RunState, Schedule, Trigger
from tocsin.schedules.runs import (
    build_run_row,
    insert_runs,
    load_open_runs,
    skip_waiting_runs,
    update_run,
)
from tocsin.store.tables import schedules
from tocsin.validation import explain_errors

MAX_WAITING = 10
"""The limit of waiting runs of one schedule; further runs are skipped."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run to start."""

    schedule: Schedule
    fire: FireTime
    trigger: Trigger
    by: str
    """The owner of its session."""


def start_runs(
    connection: Connection, wanted: Sequence[RunRequest], now: datetime
) -> list[dict[str, Any]]:
    """Start, queue or skip a run of each schedule, by its overlap policy.

    Returns the rows of the runs, in the same order.
    """
    if not wanted:
        return []
    before = load_open_runs(connection, [request.schedule.id for request in wanted])
    rows = [_admit_run(request, before[request.schedule.id], now) for request in wanted]
    pairs = [
        (request, row)
        for request, row in zip(wanted, rows, strict=True)
        if row["state"] is RunState.RUNNING
    ]
    started = _start_sessions(
        connection, [(request.schedule, request.by) for request, _ in pairs], now
    )
    for (_, row), members in zip(pairs, started, strict=True):
        row.update(members)
    insert_runs(connection, rows)
    return rows


def start_next_run(connection: Connection, schedule: Schedule, now: datetime) -> None:
    """Start the longest waiting run, unless a run is in progress."""
    waiting = load_open_runs(connection, [schedule.id])[schedule.id]
    if not waiting or waiting[0]["state"] == RunState.RUNNING:
        return
    first = waiting[0]
    try:
        [started] = _start_sessions(connection, [(schedule, first["created_by"])], now)
    except ValueError as error:
        skip_waiting_runs(connection, schedule.id, describe_invalid_definition(error), now)
        return
    update_run(connection, first["id"], {"state": RunState.RUNNING} | started)


def describe_invalid_definition(error: ValueError) -> str:
    """Describe in one line why a stored definition is invalid."""
    why = str(error)
    if isinstance(error, ValidationError):
        mistakes = explain_errors(error, ScheduleDefinition)
        why = ", ".join(
            f"{'.'.join(mistake.path)}: {mistake.found or mistake.expected}" for mistake in mistakes
        )
    return f"invalid definition: {why}"


def _admit_run(wanted: RunRequest, before: Sequence[RowMapping], now: datetime) -> dict[str, Any]:
    state, reason = decide_admission(wanted.schedule, before)
    members: dict[str, Any] = {"state": state, "reason": reason}
    if state is RunState.SKIPPED:
        members["ended_at"] = now
    return build_run_row(wanted.schedule.id, wanted.fire, wanted.trigger, wanted.by, **members)


def decide_admission(
    schedule: Schedule, before: Sequence[RowMapping]
) -> tuple[RunState, str | None]:
    """Return the state of a new run beside those in progress, and why it is skipped."""
    if not before:
        return RunState.RUNNING, None
    if schedule.definition.overlap is Overlap.SKIP:
        return (
            RunState.SKIPPED,
            f"the previous run is still in progress ({before[0]['session_id']})",
        )
    waiting = sum(row["state"] == RunState.WAITING for row in before)
    if waiting >= MAX_WAITING:
        return RunState.SKIPPED, f"{waiting} runs are already waiting"
    return RunState.WAITING, None


def _start_sessions(
    connection: Connection, wanted: Sequence[tuple[Schedule, str]], now: datetime
) -> list[dict[str, Any]]:
    """Create a session for each schedule, and return the columns of its run."""
    ids = create_sessions(
        connection, [_build_session(schedule, by) for schedule, by in wanted], now
    )
    if wanted:
        these = schedules.c.id.in_([schedule.id for schedule, _ in wanted])
        values = {"last_run_at": now, "last_status": RunState.RUNNING}
        connection.execute(update(schedules).where(these).values(values))
    return [
        {
            "session_id": session_id,
            "started_at": now,
            "begin_by": now + schedule.definition.misfire_grace,
        }
        for session_id, (schedule, _) in zip(ids, wanted, strict=True)
    ]


def _build_session(schedule: Schedule, by: str) -> NewSession:
    definition = schedule.definition
    return NewSession(
        query=definition.query,
        persona=definition.persona,
        provider=definition.provider,
        by=by,
        timeout=definition.timeout,
        schedule_id=schedule.id,
    )
