"""Runs whose session was cancelled, or that no node takes up: nobody else settles those."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, select

from tocsin.clock import isoformat
from tocsin.investigations import Failure, FailureCause, fail_waiting
from tocsin.model import SessionStatus
from tocsin.schedules.records import RunState
from tocsin.schedules.settling import Outcome, Settling
from tocsin.store.tables import IS_UNENDED, schedule_runs, sessions

AT_ONCE = 100
After = list[Callable[[], None]]
_r, _s = schedule_runs.c, sessions.c


def settle_abandoned(connection: Connection, settling: Settling, now: datetime) -> After:
    """Settle so many runs that were cancelled, and have those fail that no node takes up.

    Returns what is to be called once this transaction is committed.
    """
    after = [
        settling.settle(connection, row.schedule_id, row.session_id, Outcome(now))
        for row in _running(connection, _is_over())
    ]
    for row in _running(connection, _waits_too_long(now)):
        words = f"no node has taken it up by {isoformat(row.begin_by)}"
        if fail_waiting(connection, row.session_id, words, now):
            outcome = Outcome(now, failure=Failure(FailureCause.NOT_TAKEN_UP, words))
            after.append(settling.settle(connection, row.schedule_id, row.session_id, outcome))
    return [it for it in after if it is not None]


def is_any_abandoned(connection: Connection, now: datetime) -> bool:
    """Return whether there may be something to settle."""
    return bool(_running(connection, _is_over() | _waits_too_long(now)))


def _is_over() -> ColumnElement[bool]:
    """Return the condition that the first run of a session ended without a finisher."""
    return (_s.status == SessionStatus.CANCELLED) | (_s.run > 1)


def _waits_too_long(now: datetime) -> ColumnElement[bool]:
    return (_s.status == SessionStatus.QUEUED) & _s.started_at.is_(None) & (_r.begin_by <= now)


def _running(connection: Connection, condition: ColumnElement[bool]) -> Sequence[Any]:
    query = (
        select(_r.schedule_id, _r.session_id, _r.begin_by)
        .select_from(schedule_runs.join(sessions, _r.session_id == _s.id))
        .where(IS_UNENDED, _r.state == RunState.RUNNING, condition)
        .order_by(_r.id)
        .limit(AT_ONCE)
    )
    return connection.execute(query).all()
