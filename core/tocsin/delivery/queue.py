"""The queue of deliveries: offer, claim, settle, release.

A claim moves `due_at` to the end of its lease, so a delivery whose holder died is simply due
again. The lease's name is the fencing token: whoever settles without holding it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, insert, literal_column, select, update

from tocsin.events import event_of, new_id
from tocsin.model import Event
from tocsin.store.tables import attempts, deliveries, events

PENDING = "pending"
DELIVERED = "delivered"
DEAD = "dead"
LEASE = timedelta(seconds=90)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that is ours until `leased_until`."""

    id: str
    event: Event
    attempt: int
    remote: str | None
    lease: str
    leased_until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """How one attempt ended, and what becomes of its delivery."""

    claimed: Claimed
    state: str
    outcome: str
    started_at: datetime
    ended_at: datetime
    due_at: datetime
    status: int | None = None
    reason: str | None = None
    response: bytes = b""
    remote_id: str | None = None


def offer(connection: Connection, wanted: Iterable[tuple[Event, str]], now: datetime) -> int:
    """Put events on their way to destinations, and return how many deliveries that makes."""
    rows = [
        {
            "id": new_id("dlv"),
            "event_id": event.id,
            "destination": destination,
            "subject": event.subject,
            "state": PENDING,
            "attempts": 0,
            "due_at": now,
            "created_at": now,
        }
        for event, destination in wanted
    ]
    if rows:
        connection.execute(insert(deliveries), rows)
    return len(rows)


_due = (
    select(deliveries.c.id)
    .where(
        deliveries.c.destination == bindparam("at_destination"),
        # written out, since a partial index serves no condition that comes as a parameter
        deliveries.c.state == literal_column(f"'{PENDING}'"),
        deliveries.c.due_at <= bindparam("now"),
    )
    .order_by(deliveries.c.due_at, deliveries.c.id)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
    .cte("due")
)
_take = (
    update(deliveries)
    .where(deliveries.c.id.in_(select(_due.c.id)))
    .values(lease=bindparam("lease_name"), due_at=bindparam("leased_until"))
    .returning(deliveries.c.id)
)
_earlier = deliveries.alias("earlier")
_remote = (
    select(_earlier.c.remote_id)
    .where(
        _earlier.c.destination == deliveries.c.destination,
        _earlier.c.subject == deliveries.c.subject,
        _earlier.c.remote_id.is_not(None),
    )
    .order_by(_earlier.c.finished_at.desc())
    .limit(1)
    .scalar_subquery()
)
_taken = (
    select(
        deliveries.c.id.label("delivery_id"), deliveries.c.attempts, _remote.label("remote"), events
    )
    .join(events, events.c.id == deliveries.c.event_id)
    .where(deliveries.c.id.in_(bindparam("ids", expanding=True)))
)


def claim(connection: Connection, destination: str, most: int, now: datetime) -> list[Claimed]:
    """Return up to `most` due deliveries of a destination, the longest due first, now ours."""
    lease, until = new_id("lease"), now + LEASE
    parameters = {"at_destination": destination, "most": most, "now": now}
    taken = connection.execute(_take, {**parameters, "lease_name": lease, "leased_until": until})
    ids = list(taken.scalars())
    if not ids:
        return []
    rows = connection.execute(_taken, {"ids": ids}).mappings()
    return [_claimed(row, lease, until) for row in sorted(rows, key=itemgetter("delivery_id"))]


def _claimed(row: RowMapping, lease: str, until: datetime) -> Claimed:
    return Claimed(
        id=row["delivery_id"],
        event=event_of(row),
        attempt=row["attempts"] + 1,
        remote=row["remote"],
        lease=lease,
        leased_until=until,
    )


def settle(connection: Connection, ended: Sequence[Attempt]) -> list[Attempt]:
    """Store how attempts ended, and return those that came too late: their lease was taken over."""
    held = _held(connection, [attempt.claimed for attempt in ended])
    valid = [attempt for attempt in ended if attempt.claimed.id in held]
    if valid:
        connection.execute(_settle, [_settled(attempt) for attempt in valid])
        connection.execute(insert(attempts), [_attempt_row(attempt) for attempt in valid])
    return [attempt for attempt in ended if attempt.claimed.id not in held]


def _held(connection: Connection, claims: Sequence[Claimed]) -> set[str]:
    """Return the ids of those deliveries whose lease is still the one they were claimed with."""
    leases = {claimed.id: claimed.lease for claimed in claims}
    query = (
        select(deliveries.c.id, deliveries.c.lease)
        .where(deliveries.c.id.in_(leases))
        .with_for_update()
    )
    return {row.id for row in connection.execute(query) if row.lease == leases[row.id]}


_settle = (
    update(deliveries)
    .where(deliveries.c.id == bindparam("at_id"))
    .values(
        state=bindparam("to_state"),
        attempts=bindparam("to_attempts"),
        due_at=bindparam("to_due_at"),
        lease=None,
        reason=bindparam("to_reason"),
        remote_id=bindparam("to_remote_id"),
        finished_at=bindparam("to_finished_at"),
    )
)


def _settled(attempt: Attempt) -> dict[str, Any]:
    return {
        "at_id": attempt.claimed.id,
        "to_state": attempt.state,
        "to_attempts": attempt.claimed.attempt,
        "to_due_at": attempt.due_at,
        "to_reason": attempt.reason,
        "to_remote_id": attempt.remote_id,
        "to_finished_at": None if attempt.state == PENDING else attempt.ended_at,
    }


def _attempt_row(attempt: Attempt) -> dict[str, Any]:
    return {
        "delivery_id": attempt.claimed.id,
        "number": attempt.claimed.attempt,
        "started_at": attempt.started_at,
        "duration_ms": (attempt.ended_at - attempt.started_at) // timedelta(milliseconds=1),
        "outcome": attempt.outcome,
        "status": attempt.status,
        "reason": attempt.reason,
        "response": attempt.response,
    }


def release(connection: Connection, claims: Sequence[Claimed], now: datetime) -> None:
    """Give deliveries back untried; whose lease was taken over is left alone."""
    held = _held(connection, claims)
    if held:
        connection.execute(
            update(deliveries).where(deliveries.c.id.in_(held)).values(lease=None, due_at=now)
        )


def void_leases(connection: Connection, now: datetime) -> int:
    """Make everything due that a predecessor held, and return how many that were.

    Only for a node that knows itself to be alone on its database.
    """
    held = update(deliveries).where(
        deliveries.c.state == literal_column(f"'{PENDING}'"), deliveries.c.lease.is_not(None)
    )
    return int(connection.execute(held.values(lease=None, due_at=now)).rowcount)
