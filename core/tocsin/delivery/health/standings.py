"""Keeping in the database how receivers do, and telling of it where that changes something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection, update

from tocsin import audit
from tocsin.delivery.destinations.records import (
    TOPIC,
    Destination,
    Reason,
    State,
    columns_of,
    load_destination,
)
from tocsin.delivery.health.breaker import Patience, Standing, Verdict, judge
from tocsin.delivery.queue.requeueing import requeue
from tocsin.delivery.queue.seam import Attempt
from tocsin.store import announce
from tocsin.store.tables import destinations

_ACTIONS = {
    State.PAUSED: "destination.pause",
    State.ACTIVE: "destination.resume",
    State.DISABLED: "destination.disable",
}


@dataclass(frozen=True, slots=True)
class Change:
    """What attempts made of a destination."""

    before: Destination
    after: Destination

    @property
    def is_told(self) -> bool:
        """Whether the destination is in another state than before."""
        return self.before.state is not self.after.state


def record_verdicts(
    connection: Connection,
    known: Destination,
    ended: Sequence[Attempt],
    patience: Patience,
    now: datetime,
) -> Change | None:
    """Store what attempts say of the receiver; None where that changes nothing.

    So it is when the destination was changed or stopped meanwhile: that began a new account.
    """
    before = load_destination(connection, known.name, lock=True)
    if before is None or not before.is_served or before.revision != known.revision:
        return None
    after = _judged(before, ended, patience, now)
    if after == before and before.standing.held_until is None:
        return None
    columns = columns_of(after)
    statement = update(destinations).where(destinations.c.name == after.name)
    connection.execute(statement.values({**columns, "probing_until": None}))
    change = Change(before, after)
    if change.is_told:
        if after.state is State.ACTIVE:
            requeue(connection, after.name, now)
        audit.record(connection, _entry(after, now))
        announce(connection, TOPIC)
    return change


def _judged(
    destination: Destination, ended: Sequence[Attempt], patience: Patience, now: datetime
) -> Destination:
    standing = destination.standing
    for attempt in sorted(ended, key=lambda attempt: attempt.ended_at):
        if attempt.verdict is Verdict.UNWANTED:
            return _stopped(destination, attempt)
        standing = judge(standing, attempt.verdict, patience, now, attempt.asked)
    if not standing.is_paused:
        return replace(destination, standing=standing, state=State.ACTIVE, reason=None, detail=None)
    detail = destination.detail or next((it.reason for it in reversed(ended) if it.reason), None)
    return replace(
        destination, standing=standing, state=State.PAUSED, reason=Reason.FAILING, detail=detail
    )


def _stopped(destination: Destination, attempt: Attempt) -> Destination:
    return replace(
        destination,
        standing=Standing(),
        state=State.DISABLED,
        reason=Reason.GONE,
        detail=attempt.reason,
    )


def _entry(destination: Destination, now: datetime) -> audit.Entry:
    return audit.Entry(
        at=now,
        actor="system",
        action=_ACTIONS[destination.state],
        target=f"destination:{destination.name}",
        address="",
        request_id="",
        details={"reason": destination.reason, "detail": destination.detail},
    )
