"""Runs whose session was cancelled, or that no node takes up: nobody else settles those."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Connection, and_, or_, select

from tocsin.clock import isoformat
from tocsin.investigations import cancel_waiting
from tocsin.model import SessionStatus
from tocsin.schedules.records import RunState
from tocsin.schedules.settling import RunCompletion, RunOutcome
from tocsin.store.tables import IS_UNENDED, schedule_runs, sessions

ABANDONED_BATCH = 100
_r, _s = schedule_runs.c, sessions.c
_joined = schedule_runs.join(sessions, _r.session_id == _s.id)
_is_over = or_(_s.status == SessionStatus.CANCELLED, _s.run > 1)
"""The first run of the session ended without a finisher."""


def list_abandoned_sessions(connection: Connection, now: datetime) -> list[str]:
    """Return the sessions of so many runs that are to be settled."""
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
    """Settle the run in a session that was cancelled, or that no node has taken up in time.

    The second is missed: it says nothing of the schedule, and does not count as a failure. Returns
    what is to be called once this transaction is committed, None where nothing is to be settled
    any more.
    """
    query = select(_r.schedule_id, _r.begin_by, _is_over.label("is_over")).select_from(_joined)
    row = connection.execute(query.where(_r.session_id == session_id)).one()
    outcome = RunOutcome(now)
    if not row.is_over:
        words = f"no node has taken it up by {isoformat(row.begin_by)}"
        if not cancel_waiting(connection, session_id, words, now):
            return None
        outcome = RunOutcome(now, missed=words)
    return settling.settle(connection, row.schedule_id, session_id, outcome)
