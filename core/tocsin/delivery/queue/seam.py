"""The queue of deliveries, a seam of five verbs: offer, claim, extend, settle, release.

Whoever claims holds a lease. The lease's name is the fencing token: whoever acts without holding
it changes nothing, and is told so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection

from tocsin.delivery.health.breaker import Verdict
from tocsin.model import Event

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
