"""Replays of single deliveries, and the runner of bulk replays.

Events keep their IDs. The transaction that makes a batch of deliveries due also advances the
replay's position. An interrupted replay can therefore continue on any node where it stopped, and
does not replay any delivery twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, RowMapping, literal_column, select, update

from tocsin.clock import Clock
from tocsin.delivery.destinations.repository import DestinationState
from tocsin.delivery.history.filters import SOURCE
from tocsin.delivery.history.replays import REPLAYS, ReplayScope, ReplayState
from tocsin.delivery.queue.requeue import requeue_values
from tocsin.delivery.queue.states import is_stored_as, queue_topic
from tocsin.errors import TocsinError
from tocsin.events import Notifiers
from tocsin.loops import run_forever
from tocsin.store import Database, announce
from tocsin.store.tables import deliveries, destinations, replays

BATCH = 500
_POLL = timedelta(seconds=1)


class NoSuchDeliveryError(TocsinError):
    """There is no delivery with this ID."""


class NotReplayableError(TocsinError):
    """The delivery cannot be replayed now; the message contains the reason."""


def replay_delivery(connection: Connection, delivery_id: str, now: datetime) -> str:
    """Make one delivery due now, on a new retry schedule, and return its destination.

    A delivery that waits for its next attempt also becomes due. Raises NoSuchDeliveryError, or
    NotReplayableError if an attempt is in progress or the destination was deleted.
    """
    row = _lock_delivery(connection, delivery_id)
    if row is None:
        raise NoSuchDeliveryError(delivery_id)
    destination: str = row["destination"]
    if row["destination_state"] == DestinationState.DELETED:
        raise NotReplayableError(f"its destination {destination} was deleted")
    if row["lease"] is not None and row["due_at"] > now:
        raise NotReplayableError("an attempt is in progress")
    delivery = update(deliveries).where(deliveries.c.id == delivery_id)
    connection.execute(delivery.values(requeue_values(now)))
    announce(connection, queue_topic(destination))
    return destination


def _lock_delivery(connection: Connection, delivery_id: str) -> RowMapping | None:
    query = (
        select(
            deliveries.c.destination,
            deliveries.c.lease,
            deliveries.c.due_at,
            destinations.c.state.label("destination_state"),
        )
        .outerjoin(destinations, destinations.c.name == deliveries.c.destination)
        .where(deliveries.c.id == delivery_id)
        .with_for_update(of=deliveries)
    )
    return connection.execute(query).mappings().one_or_none()


@dataclass(frozen=True, slots=True)
class ReplayBatch:
    """Result of one batch."""

    replay_id: str
    replayed: int
    """Total over all batches so far."""
    destinations: frozenset[str]


def replay_batch(
    connection: Connection, now: datetime, *, replay_id: str | None = None, most: int = BATCH
) -> ReplayBatch | None:
    """Run the next batch of the replay that has waited longest, or of the named replay.

    Returns None if no replay is running or other nodes run all of them. A batch examines up to
    `most` deliveries in the replay's state, and makes those in the replay's scope due.
    """
    replay = _acquire_replay(connection, replay_id)
    if replay is None:
        return None
    scope = ReplayScope.of_json(replay["filter"])
    looked_at = _select_batch(connection, scope, replay["position"], most)
    sent = _requeue_batch(connection, scope, looked_at, now)
    is_done = len(looked_at) < most
    moved = {
        "position": looked_at[-1] if looked_at else replay["position"],
        "replayed": replay["replayed"] + len(sent),
        "state": ReplayState.COMPLETED if is_done else ReplayState.RUNNING,
        "updated_at": now,
        "finished_at": now if is_done else None,
    }
    connection.execute(update(replays).where(replays.c.id == replay["id"]).values(moved))
    for name in set(sent):
        announce(connection, queue_topic(name))
    return ReplayBatch(replay["id"], moved["replayed"], frozenset(sent))


def _acquire_replay(connection: Connection, replay_id: str | None) -> RowMapping | None:
    """Lock and return a running replay that no other node is working on."""
    running = select(replays).where(replays.c.state == literal_column(f"'{ReplayState.RUNNING}'"))
    if replay_id is not None:
        one = running.where(replays.c.id == replay_id).with_for_update()
    else:
        oldest = running.order_by(replays.c.updated_at, replays.c.id).limit(1)
        one = oldest.with_for_update(skip_locked=True)
    return connection.execute(one).mappings().one_or_none()


def _select_batch(
    connection: Connection, scope: ReplayScope, after: str, most: int
) -> Sequence[str]:
    query = (
        select(deliveries.c.id)
        .where(is_stored_as(scope.state), deliveries.c.id > after, deliveries.c.id <= scope.last)
        .order_by(deliveries.c.id)
        .limit(most)
    )
    return connection.scalars(query).all()


def _requeue_batch(
    connection: Connection, scope: ReplayScope, among: Sequence[str], now: datetime
) -> Sequence[str]:
    """Make the deliveries in the scope of the replay due, and return their destinations."""
    query = (
        select(deliveries.c.id)
        .select_from(SOURCE)
        .where(deliveries.c.id.in_(among), *scope.conditions())
        .order_by(deliveries.c.id)
        .with_for_update(of=deliveries)
    )
    chosen = connection.scalars(query).all()
    due = update(deliveries).where(deliveries.c.id.in_(chosen)).values(requeue_values(now))
    return connection.scalars(due.returning(deliveries.c.destination)).all()


class ReplayRunner:
    """Runs waiting replays in batches, together with the other nodes."""

    def __init__(self, database: Database, clock: Clock, notifiers: Notifiers) -> None:
        self._database = database
        self._clock = clock
        self._notifiers = notifiers

    async def run(self) -> None:
        """Run replays until canceled."""
        await run_forever(self._step, self._clock, "replaying")

    async def _step(self) -> None:
        if not await self.replay_waiting():
            await self._notifiers[REPLAYS].wait(_POLL)

    async def replay_waiting(self) -> bool:
        """Run one batch, notify its workers, and return whether there was one."""
        batch = await self._database.write(replay_batch, self._clock.now())
        if batch is None:
            return False
        for name in batch.destinations:
            self._notifiers[queue_topic(name)].notify()
        return True
