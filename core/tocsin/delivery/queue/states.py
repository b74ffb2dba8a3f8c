"""Delivery states, and the records of the queue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self

from sqlalchemy import ColumnElement, FromClause, RowMapping, literal_column

from tocsin.delivery.health.breaker import AttemptVerdict
from tocsin.events import parse_event_row
from tocsin.model import Event, Vocabulary
from tocsin.store import Row
from tocsin.store.tables import deliveries


class DeliveryState(Vocabulary):
    """State of a delivery.

    A pending delivery whose destination is not active is shown as on hold.
    """

    PENDING = "pending"
    ON_HOLD = "on_hold"
    """Tocsin does not attempt the delivery until someone fixes a problem."""
    DELIVERED = "delivered"
    DEAD = "dead"

    @classmethod
    def parse(cls, word: str) -> Self:
        """Return the member for `word` in any case; `parked` is the former name of `on_hold`."""
        return super().parse("on_hold" if word.casefold() == "parked" else word)

    @classmethod
    def parse_replayable(cls, word: str) -> Self:
        """Return the member for a state that can be replayed; else raise ValueError with those."""
        with suppress(ValueError):
            if (state := cls.parse(word)) in REPLAYABLE_STATES:
                return state
        raise ValueError(f"use one of: {', '.join(REPLAYABLE_STATES)}")


PENDING, ON_HOLD = DeliveryState.PENDING, DeliveryState.ON_HOLD
DELIVERED, DEAD = DeliveryState.DELIVERED, DeliveryState.DEAD
REPLAYABLE_STATES = (DEAD, ON_HOLD, DELIVERED)
"""States in which Tocsin makes no attempts; a bulk replay covers one of them."""
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
    """Latest time when an earlier attempt can have begun; None if there were no attempts."""
    tenant_key: str = ""
    previous_remote_id: str | None = None
    """Remote ID that the receiver returned when this delivery was delivered before."""
    is_probe: bool = False
    """Whether the attempt probes a failing receiver; the retry schedule does not advance then."""

    @property
    def identity(self) -> tuple[str, str]:
        """ID and lease; a delivery whose lease was lost may have been claimed again."""
        return self.id, self.lease


@dataclass(frozen=True, slots=True)
class Vacancy:
    """How many deliveries routing can lease to a worker on this node."""

    most: int
    tenant_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptResult:
    """Result of one attempt, and the delivery's next state."""

    claimed: ClaimedDelivery
    state: DeliveryState
    outcome: str
    verdict: AttemptVerdict
    """What the attempt says about the receiver's health."""
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
    closed: tuple[str, ...] = ()
    """Remote IDs of the objects that the delivery closed."""

    @property
    def closed_subjects(self) -> list[str]:
        """The subjects whose objects the delivery closed, sorted."""
        known = {**self.claimed.related}
        if found := self.remote_id or self.claimed.remote_id:
            known[self.claimed.event.subject] = found
        return sorted(subject for subject, remote_id in known.items() if remote_id in self.closed)

    @property
    def row(self) -> Row:
        """Values for the statement that stores the result of the attempt."""
        return (
            self.claimed.id,
            self.claimed.lease,
            self.state,
            self.claimed.attempt,
            int(self.claimed.is_probe or self.unsent),
            self.unsent,
            self.started_at,
            self.due_at,
            self.reason,
            self.remote_id,
            self.remote_url,
            None if self.state == PENDING else self.ended_at,
            _milliseconds(self.ended_at - self.started_at),
            self.outcome,
            self.status,
            self.response,
        )


def _milliseconds(duration: timedelta) -> int:
    """Return the duration within a 32-bit range, even if the clock was changed meanwhile."""
    return max(0, min(duration // timedelta(milliseconds=1), 2**31 - 1))


@dataclass(frozen=True, slots=True)
class DeliveryLease:
    """A lease on deliveries, held by a node until a certain time."""

    token: str
    until: datetime
    node: int
    tenant_key: str


def build_new_claim(id_: str, event: Event, lease: DeliveryLease) -> ClaimedDelivery:
    """Return the claim of a delivery that was leased when it was queued."""
    return ClaimedDelivery(
        id=id_,
        event=event,
        attempt=1,
        step=1,
        remote_id=None,
        lease=lease.token,
        leased_until=lease.until,
        tenant_key=lease.tenant_key,
    )


def build_claim(
    row: RowMapping, lease: DeliveryLease, known: Mapping[str, RowMapping], *, is_probe: bool
) -> ClaimedDelivery:
    """Return the claim of a delivery as it is stored; `known` are the objects of its subjects."""
    event = parse_event_row(row)
    return ClaimedDelivery(
        id=row["delivery_id"],
        event=event,
        attempt=row["attempts"] + 1,
        step=row["attempts"] - row["schedule_start"] + 1,
        tried_at=row["begun_before"],
        remote_id=row["object_remote_id"],
        previous_remote_id=row["previous_remote_id"],
        # the object of a later event is unknown to this one
        related={
            subject: known[subject]["remote_id"]
            for subject in event.related
            if subject in known and known[subject]["event_id"] < event.id
        },
        lease=lease.token,
        leased_until=lease.until,
        tenant_key=lease.tenant_key,
        is_probe=is_probe,
    )


def _state_literal(state: str) -> ColumnElement[str]:
    return literal_column(f"'{state}'")


IS_RESTING: ColumnElement[bool] = deliveries.c.state.in_(list(map(_state_literal, _RESTING)))
"""Condition: dead or on hold, so nothing is attempted until someone acts."""


def is_stored_as(state: str, of: FromClause = deliveries) -> ColumnElement[bool]:
    """Return the condition on a delivery's own state, regardless of its destination's state.

    `of` is an alias of the table `deliveries`.
    """
    matches: ColumnElement[bool] = of.c.state == _state_literal(state)
    if state not in _RESTING:
        return matches
    return of.c.state.in_(list(map(_state_literal, _RESTING))) & matches
