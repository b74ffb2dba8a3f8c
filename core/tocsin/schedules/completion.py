"""Completion of scheduled runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import structlog
from sqlalchemy import Connection, RowMapping, and_, or_, select, update

from tocsin import audit
from tocsin.clock import isoformat
from tocsin.events import emit_events
from tocsin.investigations import FinishedRun, RunFailure, cancel_waiting, find_session
from tocsin.model import Report, SessionStatus
from tocsin.schedules.admission import start_next_run
from tocsin.schedules.lifecycle import disable_schedule
from tocsin.schedules.metrics import ScheduleMetrics
from tocsin.schedules.notifications import (
    build_completed_event,
    build_disabled_event,
    build_failed_event,
)
from tocsin.schedules.records import DisabledReason, RunState, Schedule, load_schedule
from tocsin.schedules.runs import find_running_run, update_run
from tocsin.store.tables import IS_UNENDED, schedule_runs, schedules, sessions

_FIRST = 1
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """Outcome of a run."""

    at: datetime
    report: Report | None = None
    failure: RunFailure | None = None
    missed: str | None = None
    """The reason why it was not run."""

    @property
    def state(self) -> RunState:
        """The state of the run; cancelled without report, failure or reason."""
        if self.failure is not None:
            return RunState.FAILED
        if self.report is not None:
            return RunState.COMPLETED
        return RunState.CANCELLED if self.missed is None else RunState.MISSED


@dataclass(frozen=True, slots=True)
class RunCompletion:
    """Records outcomes, emits events, and disables schedules that fail too often."""

    public_url: str
    failure_limit: int
    """The default number of consecutive failures after which a schedule is disabled."""
    meter: ScheduleMetrics

    def __call__(self, connection: Connection, ended: FinishedRun) -> Callable[[], None] | None:
        """Complete a scheduled run after the first run of its session; a `Finisher`."""
        if ended.schedule_id is None or ended.run != _FIRST:
            return None
        outcome = RunOutcome(ended.at, ended.result.report, ended.result.failure)
        return self.settle(connection, ended.schedule_id, ended.session_id, outcome)

    def settle(
        self, connection: Connection, schedule_id: str, session_id: str, outcome: RunOutcome
    ) -> Callable[[], None] | None:
        """Record the outcome of the run in a session, once, with all consequences.

        Returns a function to call once this transaction is committed.
        """
        schedule = load_schedule(connection, schedule_id, lock=True)
        run = find_running_run(connection, session_id)
        if schedule is None or run is None:
            return None
        _record_outcome(connection, run, outcome)
        after = self._follow(connection, schedule, session_id, outcome)
        start_next_run(connection, after, outcome.at)
        was_disabled = schedule.is_active and not after.is_active
        return partial(self._report, after, outcome, was_disabled=was_disabled)

    def _report(self, schedule: Schedule, outcome: RunOutcome, *, was_disabled: bool) -> None:
        self.meter.count_ending(outcome.failure, was_disabled=was_disabled)
        if outcome.missed is not None:
            self.meter.count_not_taken_up()
            _log.warning("run missed", schedule=schedule.name, reason=outcome.missed)
        if was_disabled:
            facts = {"schedule": schedule.name, "id": schedule.id, "reason": schedule.last_error}
            _log.error("schedule disabled after consecutive failures", **facts)

    def _follow(
        self, connection: Connection, schedule: Schedule, session_id: str, outcome: RunOutcome
    ) -> Schedule:
        if outcome.report is None and outcome.failure is None:
            return _store_result(connection, replace(schedule, last_status=outcome.state))
        session = find_session(connection, session_id, public_url=self.public_url)
        assert session is not None  # noqa: S101 - it was completed in this transaction
        if outcome.report is not None:
            done = replace(schedule, last_status=RunState.COMPLETED, last_error=None)
            done = _store_result(connection, replace(done, consecutive_failures=0))
            event = build_completed_event(
                done, session, outcome.report, self.public_url, outcome.at
            )
            emit_events(connection, [event])
            return done
        failed = replace(
            schedule,
            last_status=RunState.FAILED,
            last_error=session["error"],
            consecutive_failures=schedule.consecutive_failures + 1,
        )
        failed = _store_result(connection, failed)
        emit_events(connection, [build_failed_event(failed, session, self.public_url, outcome.at)])
        return self._disable_if_hopeless(connection, failed, outcome.at)

    def _disable_if_hopeless(
        self, connection: Connection, schedule: Schedule, now: datetime
    ) -> Schedule:
        limit = schedule.document.get("failure_limit") or self.failure_limit
        if not schedule.is_active or schedule.consecutive_failures < limit:
            return schedule
        disabled = disable_schedule(connection, schedule, DisabledReason.FAILURES, now)
        emit_events(connection, [build_disabled_event(disabled, self.public_url, now)])
        audit.record(connection, _build_audit_entry(disabled, now))
        return disabled


def _record_outcome(connection: Connection, run: RowMapping, outcome: RunOutcome) -> None:
    failure = outcome.failure
    values = {
        "state": outcome.state,
        "ended_at": outcome.at,
        "cause": failure and failure.cause.value,
        "reason": failure.reason if failure else outcome.missed,
    }
    update_run(connection, run["id"], values)


def _build_audit_entry(schedule: Schedule, now: datetime) -> audit.AuditRecord:
    return audit.AuditRecord(
        at=now,
        actor="system",
        action="schedule.disable",
        target=f"schedule:{schedule.id}",
        address="",
        request_id="",
        details={"reason": schedule.disabled_reason, "error": schedule.last_error},
    )


def _store_result(connection: Connection, schedule: Schedule) -> Schedule:
    """Store the result of a run; this is not a new revision."""
    names = ("consecutive_failures", "last_status", "last_error")
    values = {name: getattr(schedule, name) for name in names}
    connection.execute(update(schedules).where(schedules.c.id == schedule.id).values(values))
    return schedule


ABANDONED_BATCH = 100
_r, _s = schedule_runs.c, sessions.c
_joined = schedule_runs.join(sessions, _r.session_id == _s.id)
_is_over = or_(_s.status == SessionStatus.CANCELLED, _s.run > 1)
"""Condition: the first run of the session ended without a finisher."""


def list_abandoned_sessions(connection: Connection, now: datetime) -> list[str]:
    """Return the sessions of a batch of abandoned runs."""
    waits = and_(_s.status == SessionStatus.QUEUED, _s.started_at.is_(None), _r.begin_by <= now)
    query = (
        select(_r.session_id)
        .select_from(_joined)
        .where(IS_UNENDED, _r.state == RunState.RUNNING, or_(_is_over, waits))
        .order_by(_r.id)
        .limit(ABANDONED_BATCH)
    )
    return list(connection.scalars(query))


def settle_abandoned_run(
    connection: Connection, session_id: str, settling: RunCompletion, now: datetime
) -> Callable[[], None] | None:
    """Complete the run of a session that was cancelled, or that no node claimed in time.

    An unclaimed run is missed, which does not count as a failure. Returns a function to call once
    this transaction is committed, None where the run was completed meanwhile.
    """
    query = select(_r.schedule_id, _r.begin_by, _is_over.label("is_over")).select_from(_joined)
    row = connection.execute(query.where(_r.session_id == session_id)).one()
    outcome = RunOutcome(now)
    if not row.is_over:
        reason = f"no node claimed the run by {isoformat(row.begin_by)}"
        if not cancel_waiting(connection, session_id, reason, now):
            return None
        outcome = RunOutcome(now, missed=reason)
    return settling.settle(connection, row.schedule_id, session_id, outcome)
