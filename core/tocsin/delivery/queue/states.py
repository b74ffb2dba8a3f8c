"""Delivery states, claims and attempts, and the statements on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Connection,
    FromClause,
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

from tocsin.delivery.health.breaker import Verdict
from tocsin.model import Event
from tocsin.store import announce
from tocsin.store.statements import BulkStatement
from tocsin.store.tables import attempts, deliveries, destinations, events, remote_objects

PENDING = "pending"
PARKED = "parked"
DELIVERED = "delivered"
DEAD = "dead"
LEASE = timedelta(seconds=90)
HEARTBEAT = LEASE / 6


def queue_topic(destination: str) -> str:
    """Return the topic of deliveries that were put on their way to a destination."""
    return f"queued:{destination}"


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A delivery that is ours until `leased_until`, or for longer if that is extended."""

    id: str
    event: Event
    attempt: int
    step: int
    """The attempt's number within the present schedule; a replay begins a new one."""
    remote: str | None
    lease: str
    leased_until: datetime
    related: Mapping[str, str] = field(default_factory=dict)
    """What the destination calls the objects of subjects that the event is related to."""
    tried_at: datetime | None = None
    """After this no earlier attempt began, whatever became of them; None where there was none."""
    home: str = ""
    left: str | None = None
    """What the receiver calls what this delivery left there when it arrived before."""
    is_probe: bool = False
    """Whether it tries a receiver that fails: its schedule stands still meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptResult:
    """How one attempt ended, and what becomes of its delivery."""

    claimed: ClaimedDelivery
    state: str
    outcome: str
    verdict: Verdict
    """What it says of the receiver."""
    started_at: datetime
    ended_at: datetime
    due_at: datetime
    asked: timedelta | None = None
    """The delay that the receiver named, if it named one."""
    unsent: bool = False
    """Whether nothing was sent: neither does its schedule go on, nor was it tried."""
    status: int | None = None
    reason: str | None = None
    response: bytes = b""
    remote_id: str | None = None
    remote_url: str | None = None


class DeliveryQueue(ABC):
    """What brings deliveries to workers, each to one of them at a time, and none to nobody."""

    @abstractmethod
    def offer(
        self, connection: Connection, wanted: Iterable[tuple[Event, str]], now: datetime
    ) -> int:
        """Put events on their way to destinations, and return how many deliveries that makes.

        In the transaction that routes the events: both are done, or neither.
        """

    @abstractmethod
    async def claim(
        self,
        destination: str,
        most: int,
        now: datetime,
        *,
        in_order: bool = False,
        early: bool = False,
        home: str = "",
    ) -> list[ClaimedDelivery]:
        """Return up to `most` due deliveries of a destination, the longest due first, now ours.

        With `in_order`, of each subject only the oldest that waits, none while another is under
        way, and none before what is older of a subject that its event is related to. With `early`,
        as probes and also before they are due. `home` is where the channel keeps its objects: those
        that were made elsewhere are not known.
        """

    @abstractmethod
    async def extend(
        self, claims: Sequence[ClaimedDelivery], now: datetime
    ) -> list[ClaimedDelivery]:
        """Hold the leases for as long again, and return those that are not ours any more."""

    @abstractmethod
    async def settle(self, ended: Sequence[AttemptResult]) -> list[AttemptResult]:
        """Store how attempts ended, and return those that came too late: their lease was lost."""

    @abstractmethod
    async def release(
        self, claims: Sequence[ClaimedDelivery], now: datetime, *, begun: bool = False
    ) -> None:
        """Give deliveries back, untried or `begun`; those whose lease was lost are left alone."""


_RESTING = (DEAD, PARKED)


def _state_literal(state: str) -> ColumnElement[str]:
    return literal_column(f"'{state}'")


IS_RESTING: ColumnElement[bool] = deliveries.c.state.in_(
    [_state_literal(state) for state in _RESTING]
)
"""The condition that nothing is attempted until someone acts: dead, or parked."""


def is_stored_as(state: str, of: FromClause = deliveries) -> ColumnElement[bool]:
    """Return the condition that this is a delivery's own state, whatever its destination's is.

    `of` is the table of deliveries under another name.
    """
    is_it: ColumnElement[bool] = of.c.state == _state_literal(state)
    if state not in _RESTING:
        return is_it
    return of.c.state.in_([_state_literal(resting) for resting in _RESTING]) & is_it


_EXPIRED = "its destination was deleted"


_IS_WAITING = is_stored_as(PENDING) & deliveries.c.lease.is_(None)
_IS_ON_HOLD = is_stored_as(PARKED)


def requeue_values(now: datetime) -> dict[str, Any]:
    """Return what makes a delivery due, held by nobody, with a schedule of its own."""
    return {
        "state": PENDING,
        "due_at": now,
        "schedule_start": deliveries.c.attempts,
        "lease": None,
        "holder": None,
        "finished_at": None,
    }


def requeue_destination(connection: Connection, destination: str, now: datetime) -> int:
    """Make due what waits for a destination and what is parked, each with a schedule of its own.

    What is under way is left alone. Returns how many deliveries that were.
    """
    of_it = deliveries.c.destination == destination
    moved = sum(
        _requeue_matching(connection, which & of_it, now) for which in (_IS_WAITING, _IS_ON_HOLD)
    )
    announce(connection, queue_topic(destination))
    return moved


def requeue_on_hold(connection: Connection, now: datetime) -> int:
    """Make due what is parked, for templates and plugins may have been mended; return how many."""
    return _requeue_matching(connection, _IS_ON_HOLD, now)


def _requeue_matching(connection: Connection, which: ColumnElement[bool], now: datetime) -> int:
    due = update(deliveries).where(which).values(requeue_values(now))
    return int(connection.execute(due).rowcount)


def expire_deliveries(connection: Connection, now: datetime) -> int:
    """Make dead what waits for deleted destinations, and return how many deliveries that were.

    What is under way at that moment is left to end by itself, for a later call.
    """
    deleted = select(destinations.c.name).where(destinations.c.state == "deleted")
    of_them = deliveries.c.destination.in_(deleted)
    values = {"state": DEAD, "reason": _EXPIRED, "finished_at": now}
    return sum(
        int(connection.execute(update(deliveries).where(which & of_them).values(values)).rowcount)
        for which in (_IS_WAITING, _IS_ON_HOLD)
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


def _build_claim(*, in_order: bool, early: bool) -> Update:
    is_due = deliveries.c.due_at <= bindparam("now")
    due = select(deliveries.c.id).where(
        deliveries.c.destination == bindparam("at_destination"),
        is_stored_as(PENDING),
        deliveries.c.lease.is_(None) if early else is_due,
        *([~_is_behind] if in_order else []),
    )
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
TAKEN = (
    select(
        deliveries.c.id.label("delivery_id"),
        deliveries.c.attempts,
        deliveries.c.schedule_start,
        deliveries.c.begun_before,
        deliveries.c.remote_id.label("left"),
        remote_objects.c.remote_id.label("remote"),
        events,
    )
    .join(events, events.c.id == deliveries.c.event_id)
    .outerjoin(
        remote_objects,
        and_(
            remote_objects.c.destination == deliveries.c.destination,
            remote_objects.c.subject == deliveries.c.subject,
            remote_objects.c.home == bindparam("at_home"),
        ),
    )
    .where(deliveries.c.id.in_(bindparam("ids", expanding=True)))
)
RELATED = select(
    remote_objects.c.subject, remote_objects.c.remote_id, remote_objects.c.event_id
).where(
    remote_objects.c.destination == bindparam("at_destination"),
    remote_objects.c.home == bindparam("at_home"),
    remote_objects.c.subject.in_(bindparam("subjects", expanding=True)),
)
LEASES = (
    select(deliveries.c.id, deliveries.c.lease, deliveries.c.destination, deliveries.c.subject)
    .where(deliveries.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(deliveries.c.id)
    .with_for_update()
)
IN_FRONT = (
    select(deliveries.c.id, deliveries.c.subject, deliveries.c.lease, deliveries.c.due_at)
    .where(
        deliveries.c.destination == bindparam("at_destination"),
        deliveries.c.subject.in_(bindparam("subjects", expanding=True)),
        is_stored_as(PENDING),
    )
    .order_by(deliveries.c.id)
)
"""What is not delivered yet of other subjects."""
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
