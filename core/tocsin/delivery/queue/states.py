"""Delivery states, the records of the queue, and its SQL statements.

No index serves a condition that comes as a parameter, so statements spell states out. SQLite uses a
partial index only if the query repeats the index's own condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Text,
    Update,
    and_,
    bindparam,
    case,
    exists,
    func,
    insert,
    literal_column,
    null,
    or_,
    select,
    update,
)

from tocsin.delivery.health.breaker import AttemptVerdict
from tocsin.errors import CANNOT_CONNECT
from tocsin.events import RESTORED
from tocsin.model import Event, Vocabulary
from tocsin.store import BulkStatement, announce, is_in
from tocsin.store.tables import attempts, deliveries, destinations, events, remote_objects

_EXPIRED = "its destination was deleted"


class DeliveryState(Vocabulary):
    """State of a delivery, as stored and as shown.

    A pending delivery whose destination is not active is shown as on hold.
    """

    PENDING = "pending"
    ON_HOLD = "on_hold"
    """Not attempted until its configuration is fixed."""
    DELIVERED = "delivered"
    DEAD = "dead"

    @classmethod
    def parse(cls, word: str) -> Self:
        """Return the member for `word` in any case; `parked` is the former name of `on_hold`."""
        return super().parse("on_hold" if word.casefold() == "parked" else word)

    @classmethod
    def parse_replayable(cls, word: str) -> Self:
        """Return the member for a state that bulk replays take; ValueError names those states."""
        with suppress(ValueError):
            if (state := cls.parse(word)) in REPLAYABLE_STATES:
                return state
        raise ValueError(f"give one of: {', '.join(REPLAYABLE_STATES)}")


PENDING, ON_HOLD = DeliveryState.PENDING, DeliveryState.ON_HOLD
DELIVERED, DEAD = DeliveryState.DELIVERED, DeliveryState.DEAD
REPLAYABLE_STATES = (DEAD, ON_HOLD, DELIVERED)
"""States in which nothing is attempted: bulk replays take one of them."""
_RESTING = (DEAD, ON_HOLD)


queue_topic: Callable[[str], str] = "queued:{}".format
"""Return the topic that announces deliveries queued for a destination."""


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A delivery leased to this node until `leased_until`, or longer if the lease is extended."""

    id: str
    event: Event
    attempt: int
    step: int
    """Number of the attempt in the current retry schedule; a replay starts a new schedule."""
    remote_id: str | None
    """Remote ID of the subject's object at the destination."""
    lease: str
    leased_until: datetime
    related: Mapping[str, str] = field(default_factory=dict)
    """Remote IDs at the destination of the subjects that the event is related to."""
    tried_at: datetime | None = None
    """Latest time at which an earlier attempt can have begun; None without earlier attempts."""
    tenant_key: str = ""
    previous_remote_id: str | None = None
    """Remote ID that this delivery returned when it was delivered before."""
    is_probe: bool = False
    """Whether it probes a failing receiver; its retry schedule does not advance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptResult:
    """Result of one attempt, and the next state of its delivery."""

    claimed: ClaimedDelivery
    state: DeliveryState
    outcome: str
    verdict: AttemptVerdict
    """Meaning for the health of the receiver."""
    started_at: datetime
    ended_at: datetime
    due_at: datetime
    requested_delay: timedelta | None = None
    """Delay that the receiver requested, if any."""
    unsent: bool = False
    """Whether nothing was sent: the retry schedule does not advance, and `tried_at` stays."""
    status: int | None = None
    reason: str | None = None
    response: bytes = b""
    remote_id: str | None = None
    remote_url: str | None = None


def _state_literal(state: str) -> ColumnElement[str]:
    return literal_column(f"'{state}'")


IS_RESTING: ColumnElement[bool] = deliveries.c.state.in_(list(map(_state_literal, _RESTING)))
"""Condition: dead or on hold, so nothing is attempted until someone acts."""


def is_stored_as(state: str, of: FromClause = deliveries) -> ColumnElement[bool]:
    """Return the condition on a delivery's own state, regardless of its destination's state.

    `of` is the table of deliveries under another name.
    """
    matches: ColumnElement[bool] = of.c.state == _state_literal(state)
    if state not in _RESTING:
        return matches
    return of.c.state.in_(list(map(_state_literal, _RESTING))) & matches


_IS_WAITING = is_stored_as(PENDING) & deliveries.c.lease.is_(None)
_IS_RETRIED = is_stored_as(ON_HOLD) & ~func.coalesce(deliveries.c.reason, "").startswith(RESTORED)


def requeue_values(now: datetime) -> dict[str, Any]:
    """Return the columns that make a delivery due, without a lease, on a new retry schedule."""
    return {
        "state": PENDING,
        "due_at": now,
        "schedule_start": deliveries.c.attempts,
        "lease": None,
        "holder": None,
        "finished_at": None,
    }


def requeue_destination(connection: Connection, destination: str, now: datetime) -> int:
    """Make the waiting and on-hold deliveries of a destination due, on new retry schedules.

    Deliveries in progress stay as they are. Returns the number of deliveries made due.
    """
    at_destination = deliveries.c.destination == destination
    moved = sum(
        _requeue_matching(connection, condition & at_destination, now)
        for condition in (_IS_WAITING, _IS_RETRIED)
    )
    announce(connection, queue_topic(destination))
    return moved


def requeue_after_outage(connection: Connection, destination: str, now: datetime) -> int:
    """Make the deliveries due that wait because no connection was made, and return their number.

    Their retry schedules continue. Those that failed for another reason keep their time: the
    receiver may fail at them again and again.
    """
    waits = (
        deliveries.c.destination == destination,
        _IS_WAITING,
        deliveries.c.due_at > now,
        deliveries.c.reason.contains(CANNOT_CONNECT),
    )
    moved = int(connection.execute(update(deliveries).where(*waits).values(due_at=now)).rowcount)
    if moved:
        announce(connection, queue_topic(destination))
    return moved


def release_on_hold(connection: Connection, destination: str, now: datetime) -> int:
    """Make the deliveries of a destination that are on hold due, and return their number."""
    at_destination = deliveries.c.destination == destination
    moved = _requeue_matching(connection, _IS_RETRIED & at_destination, now)
    announce(connection, queue_topic(destination))
    return moved


def requeue_on_hold(connection: Connection, now: datetime) -> int:
    """Make all deliveries on hold due, but for restored ones, and return their number."""
    return _requeue_matching(connection, _IS_RETRIED, now)


def _requeue_matching(connection: Connection, condition: ColumnElement[bool], now: datetime) -> int:
    due = update(deliveries).where(condition).values(requeue_values(now))
    return int(connection.execute(due).rowcount)


def expire_deliveries(connection: Connection, now: datetime) -> int:
    """Mark waiting deliveries of deleted destinations dead, and return their number.

    Deliveries in progress are left for a later call.
    """
    deleted = select(destinations.c.name).where(destinations.c.state == "deleted")
    is_orphaned = deliveries.c.destination.in_(deleted)
    expired = update(deliveries).values(state=DEAD, reason=_EXPIRED, finished_at=now)
    return sum(
        int(connection.execute(expired.where(condition & is_orphaned)).rowcount)
        for condition in (_IS_WAITING, is_stored_as(ON_HOLD))
    )


_other = deliveries.alias("other")
_is_behind = exists().where(
    _other.c.destination == deliveries.c.destination,
    _other.c.subject == deliveries.c.subject,
    is_stored_as(PENDING, _other),
    _other.c.id != deliveries.c.id,
    or_(
        _other.c.id < deliveries.c.id,
        and_(_other.c.lease.is_not(None), _other.c.due_at > bindparam("now")),
    ),
)


def _select_claimable(*, in_order: bool, early: bool) -> Select[Any]:
    is_due = deliveries.c.due_at <= bindparam("now")
    return select(deliveries.c.id).where(
        deliveries.c.destination == bindparam("at_destination"),
        is_stored_as(PENDING),
        deliveries.c.lease.is_(None) if early else is_due,
        *([~_is_behind] if in_order else []),
    )


def _build_claim(*, in_order: bool, early: bool) -> Update:
    due = _select_claimable(in_order=in_order, early=early)
    first = due.order_by(deliveries.c.due_at, deliveries.c.id).limit(bindparam("most"))
    chosen = first.with_for_update(skip_locked=True, of=deliveries).cte("due")
    return (
        update(deliveries)
        .where(deliveries.c.id.in_(select(chosen.c.id)))
        .values(
            lease=bindparam("lease_name"),
            holder=bindparam("by_holder"),
            due_at=bindparam("leased_until"),
            begun_before=deliveries.c.begun_by,
            begun_by=bindparam("beginning_by"),
        )
        .returning(deliveries.c.id)
    )


CLAIMS = {
    (in_order, early): _build_claim(in_order=in_order, early=early)
    for in_order in (False, True)
    for early in (False, True)
}
LOOKS = {
    (in_order, early): _select_claimable(in_order=in_order, early=early).limit(1)
    for in_order in (False, True)
    for early in (False, True)
}
"""Whether a claim would find anything, without writing."""
TAKEN = (
    select(
        deliveries.c.id.label("delivery_id"),
        deliveries.c.attempts,
        deliveries.c.schedule_start,
        deliveries.c.begun_before,
        deliveries.c.remote_id.label("previous_remote_id"),
        remote_objects.c.remote_id.label("object_remote_id"),
        events,
    )
    .join(events, events.c.id == deliveries.c.event_id)
    .outerjoin(
        remote_objects,
        and_(
            remote_objects.c.destination == deliveries.c.destination,
            remote_objects.c.subject == deliveries.c.subject,
            remote_objects.c.home == bindparam("at_tenant"),
        ),
    )
    .where(is_in(deliveries.c.id, "ids"))
)
RELATED = select(
    remote_objects.c.subject, remote_objects.c.remote_id, remote_objects.c.event_id
).where(
    remote_objects.c.destination == bindparam("at_destination"),
    remote_objects.c.home == bindparam("at_tenant"),
    is_in(remote_objects.c.subject, "subjects"),
)
LEASES = (
    select(deliveries.c.id, deliveries.c.lease, deliveries.c.destination, deliveries.c.subject)
    .where(is_in(deliveries.c.id, "ids"))
    .order_by(deliveries.c.id)
    .with_for_update()
)
IN_FRONT = (
    select(deliveries.c.id, deliveries.c.subject, deliveries.c.lease, deliveries.c.due_at)
    .where(
        deliveries.c.destination == bindparam("at_destination"),
        is_in(deliveries.c.subject, "subjects"),
        is_stored_as(PENDING),
    )
    .order_by(deliveries.c.id)
)
"""Pending deliveries of other subjects."""
EXTEND = (
    update(deliveries)
    .where(is_in(deliveries.c.id, "ids"))
    .values(due_at=bindparam("leased_until"), begun_by=bindparam("beginning_by"))
)
RELEASE = (
    update(deliveries)
    .where(is_in(deliveries.c.id, "ids"))
    .values(
        due_at=bindparam("to_due_at"), lease=None, holder=None, begun_by=deliveries.c.begun_before
    )
)
"""Makes deliveries due, as if they had not been claimed."""
RELEASE_BEGUN = RELEASE.values(begun_by=bindparam("to_due_at"))
OFFER = BulkStatement(
    insert(deliveries),
    (
        "id",
        "event_id",
        "destination",
        "subject",
        "state",
        "attempts",
        "schedule_start",
        "due_at",
        "created_at",
        "reason",
        "finished_at",
    ),
)
SETTLE = BulkStatement(
    update(deliveries)
    .where(deliveries.c.id == bindparam("at_id"))
    .values(
        state=bindparam("to_state"),
        attempts=bindparam("to_attempts"),
        schedule_start=deliveries.c.schedule_start + bindparam("spared"),
        begun_by=case(
            (bindparam("was_unsent", type_=Boolean), deliveries.c.begun_before),
            else_=bindparam("to_begun_by", type_=deliveries.c.begun_by.type),
        ),
        due_at=bindparam("to_due_at"),
        lease=null(),
        holder=null(),
        reason=bindparam("to_reason"),
        remote_id=func.coalesce(bindparam("to_remote_id", type_=Text), deliveries.c.remote_id),
        remote_url=func.coalesce(bindparam("to_remote_url", type_=Text), deliveries.c.remote_url),
        finished_at=bindparam("to_finished_at"),
    ),
    (
        "at_id",
        "to_state",
        "to_attempts",
        "spared",
        "was_unsent",
        "to_begun_by",
        "to_due_at",
        "to_reason",
        "to_remote_id",
        "to_remote_url",
        "to_finished_at",
    ),
)
LOG_ATTEMPT = BulkStatement(
    insert(attempts),
    (
        "delivery_id",
        "number",
        "started_at",
        "duration_ms",
        "outcome",
        "status",
        "reason",
        "response",
    ),
)
