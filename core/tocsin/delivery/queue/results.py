"""Results of attempts in the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import Connection, or_

from tocsin.delivery.queue.statements import LOG_ATTEMPT, SELECT_SUBJECTS, SETTLE
from tocsin.delivery.queue.states import PENDING, AttemptResult
from tocsin.store import Row, build_insert
from tocsin.store.tables import remote_objects


def store_results(connection: Connection, ended: Sequence[AttemptResult]) -> list[AttemptResult]:
    """Store results of attempts, and return those that came late: their lease was lost."""
    settled = SETTLE.run(connection, [_settlement_row(attempt) for attempt in ended])
    valid = [attempt for attempt in ended if attempt.claimed.id in settled]
    LOG_ATTEMPT.run(connection, map(_attempt_row, valid))
    _store_remote_objects(connection, valid)
    return [attempt for attempt in ended if attempt.claimed.id not in settled]


def _settlement_row(attempt: AttemptResult) -> Row:
    return (
        attempt.claimed.id,
        attempt.claimed.lease,
        attempt.state,
        attempt.claimed.attempt,
        int(attempt.claimed.is_probe or attempt.unsent),
        attempt.unsent,
        attempt.started_at,
        attempt.due_at,
        attempt.reason,
        attempt.remote_id,
        attempt.remote_url,
        None if attempt.state == PENDING else attempt.ended_at,
    )


def _attempt_row(attempt: AttemptResult) -> Row:
    return (
        attempt.claimed.id,
        attempt.claimed.attempt,
        attempt.started_at,
        _milliseconds(attempt.ended_at - attempt.started_at),
        attempt.outcome,
        attempt.status,
        attempt.reason,
        attempt.response,
    )


def _milliseconds(duration: timedelta) -> int:
    """Return the duration in a 32-bit range, even if the clock was set meanwhile."""
    return max(0, min(duration // timedelta(milliseconds=1), 2**31 - 1))


def _store_remote_objects(connection: Connection, ended: Sequence[AttemptResult]) -> None:
    """Store the remote IDs of subjects, for later events to update."""
    made = {each.claimed.id: each for each in ended if each.remote_id is not None}
    if not made:
        return
    known = {}
    for row in connection.execute(SELECT_SUBJECTS, {"ids": list(made)}).mappings():
        known[row["destination"], row["subject"]] = made[row["id"]]
    # the same order on every node avoids deadlocks
    for destination, subject in sorted(known):
        attempt = known[destination, subject]
        key = {"destination": destination, "subject": subject}
        values = {
            "remote_id": attempt.remote_id,
            "home": attempt.claimed.tenant_key,
            "event_id": attempt.claimed.event.id,
            "updated_at": attempt.ended_at,
        }
        statement = build_insert(connection, remote_objects).values(**key, **values)
        # a replayed event does not restore the object of its time
        is_newer = or_(
            remote_objects.c.event_id <= values["event_id"],
            remote_objects.c.home != values["home"],
        )
        changing = statement.on_conflict_do_update(
            index_elements=list(key), set_=values, where=is_newer
        )
        connection.execute(changing)
