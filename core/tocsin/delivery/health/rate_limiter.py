"""Rate limit, holds and digest windows for a destination."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection, and_, or_, select, update

from tocsin.delivery.destinations.repository import Destination, load_destination
from tocsin.delivery.queue.states import PENDING, is_stored_as
from tocsin.hookspecs import Channel
from tocsin.store import Database
from tocsin.store.tables import EPOCH, deliveries, destinations

FRESH = timedelta(milliseconds=500)
"""Maximum age of a loaded destination for claims and attempts."""
FRESH_WHILE_HELD = timedelta(seconds=15)
"""The same limit while the destination is held; `expire` ends it early, as after a resume."""
_MINUTE = timedelta(minutes=1)
_LONGEST_DEBT = timedelta(minutes=1)  # more than the clocks of nodes differ


IsClaimable = Callable[[bool], Awaitable[bool]]
"""Returns whether a delivery can be claimed; with True, also one that is not due yet."""


@dataclass(frozen=True, slots=True)
class Permit:
    """How many deliveries can be claimed now, and whether as a probe."""

    most: int
    is_probe: bool = False
    is_early: bool = False
    """Whether deliveries can be claimed before they are due, because all wait for the receiver."""


class DeliveryRateLimiter:
    """Limits deliveries to one destination by its health, rate limit and digest window."""

    def __init__(self, destination: Destination, channel: Channel, database: Database) -> None:
        self.destination = destination
        """The destination as it was last loaded."""
        self._settings = channel.settings
        self._gathering = channel.gathering
        self._database = database
        self._clock = channel.tools.clock
        self._read_at = self._clock.now()
        self._is_served = True
        self._loading = asyncio.Lock()

    async def permit(self, wanted: int, is_claimable: IsClaimable) -> Permit:
        """Return how many of the wanted deliveries can be claimed now.

        The method writes to the database only if a delivery can be claimed.
        """
        if not await self._is_current():
            return Permit(0)
        now, health = self._clock.now(), self.destination.health
        if (health.held_until or now) > now or not await is_claimable(health.is_paused):
            return Permit(0)
        if health.held_until is not None:
            may = await self._may_probe(now)
            return Permit(int(may), is_probe=may, is_early=may and health.is_paused)
        if self._gathering is not None and not await self._has_gathered(now, self._gathering):
            return Permit(0)
        if self._interval is None:
            return Permit(wanted)
        turns = await self._database.write(take_turns, self._name, wanted, self._interval, now)
        return Permit(turns)

    async def _has_gathered(self, now: datetime, length: timedelta) -> bool:
        return await self._database.lookup(has_gathered, self._name, now, length)

    async def _may_probe(self, now: datetime) -> bool:
        until = now + self._settings.timeout + _MINUTE
        return await self._database.write(try_probe, self._name, now, until)

    def expire(self) -> None:
        """Load the destination again before the next claim or attempt."""
        self._read_at = EPOCH

    async def give_back(self, permit: Permit, used: int) -> None:
        """Return unused permits."""
        unused = permit.most - used
        if not unused:
            return
        if permit.is_probe:
            await self._database.write(end_probe, self._name)
        elif self._interval is not None:
            await self._database.write(give_back_turns, self._name, unused, self._interval)

    async def is_open(self) -> bool:
        """Return whether an attempt can begin: the revision is current and not on hold."""
        if not await self._is_current():
            return False
        held_until = self.destination.health.held_until
        return held_until is None or held_until <= self._clock.now()

    def is_known_open(self, now: datetime) -> bool:
        """Return whether an attempt can begin, as far as the recently loaded destination shows."""
        destination = self.destination
        is_served = self._is_served and destination.is_served
        return is_served and destination.health.held_until is None and now - self._read_at <= FRESH

    @property
    def is_unlimited(self) -> bool:
        """Whether, as far as this node knows, claims do not need a permit."""
        is_held = self.destination.health.held_until is not None
        return self._gathering is None and self._interval is None and not is_held

    @property
    def _name(self) -> str:
        return self.destination.name

    @property
    def _interval(self) -> timedelta | None:
        limit = self._settings.rate_limit
        return None if limit is None else _MINUTE / limit

    async def _is_current(self) -> bool:
        """Return whether this revision is current; load the destination if the copy is stale."""
        if self._is_fresh():
            return True
        async with self._loading:
            if self._is_fresh():  # others have waited for the same
                return True
            now = self._clock.now()
            found = await self._database.lookup(load_destination, self._name)
            revision = self.destination.revision
            self._is_served = found is not None and found.is_served and found.revision == revision
            if self._is_served and found is not None:
                self.destination, self._read_at = found, now
            return self._is_served

    def _is_fresh(self) -> bool:
        """Return whether the loaded destination is recent, and its revision is still current."""
        now = self._clock.now()
        is_served = self._is_served and self.destination.is_served
        is_held = (self.destination.health.held_until or now) > now
        return is_served and now - self._read_at <= (FRESH_WHILE_HELD if is_held else FRESH)


def window_start(now: datetime, length: timedelta) -> datetime:
    """Return the start of the current window; windows are aligned to midnight UTC."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + (now - midnight) // length * length


def has_gathered(connection: Connection, name: str, now: datetime, length: timedelta) -> bool:
    """Return whether a delivery has waited since before the current window.

    The query uses only the deliveries, so nodes do not need to keep state. Retried deliveries
    follow their schedule, and wait at most a minute for each other.
    """
    is_new = deliveries.c.attempts == 0
    shorter = min(length, _MINUTE)
    waited = or_(
        and_(is_new, deliveries.c.created_at < window_start(now, length)),
        and_(~is_new, deliveries.c.due_at < window_start(now, shorter)),
    )
    of_it = (deliveries.c.destination == name, is_stored_as(PENDING), deliveries.c.due_at <= now)
    query = select(deliveries.c.id).where(*of_it, waited).limit(1)
    return connection.execute(query).first() is not None


def try_probe(connection: Connection, name: str, now: datetime, until: datetime) -> bool:
    """Return whether this node can now send one delivery as a probe.

    If so, no other node can send a probe before `until` or before the result is known.
    """
    is_unclaimed = or_(destinations.c.probing_until.is_(None), destinations.c.probing_until <= now)
    statement = update(destinations).where(
        destinations.c.name == name, destinations.c.held_until <= now, is_unclaimed
    )
    return connection.execute(statement.values(probing_until=until)).rowcount == 1


def end_probe(connection: Connection, name: str) -> None:
    """End the probe, so that the next one can start."""
    connection.execute(
        update(destinations).where(destinations.c.name == name).values(probing_until=None)
    )


def take_turns(
    connection: Connection, name: str, wanted: int, interval: timedelta, now: datetime
) -> int:
    """Return how many of the wanted attempts the rate limit allows now, and use these turns.

    The function uses the generic cell rate algorithm with one column, so the limit applies across
    all nodes. It allows one turn per `interval`, and all turns of the last second at once.
    """
    saved = max(timedelta(seconds=1), interval)
    free_at = max(_free_at(connection, name) or now - saved, now - saved)
    if free_at > now + _LONGEST_DEBT + interval:  # the clock was set back
        free_at = now
    turns = max(0, min(wanted, (now - free_at) // interval))
    _set_free(connection, name, free_at + turns * interval)
    return turns


def give_back_turns(connection: Connection, name: str, unused: int, interval: timedelta) -> None:
    """Return unused turns."""
    free_at = _free_at(connection, name)
    assert free_at is not None  # noqa: S101 - turns were taken before
    _set_free(connection, name, free_at - unused * interval)


def _free_at(connection: Connection, name: str) -> datetime | None:
    """Return the time of the next free turn; lock it until the transaction ends."""
    query = select(destinations.c.free_at).where(destinations.c.name == name)
    free_at: datetime | None = connection.execute(query.with_for_update()).scalar_one()
    return free_at


def _set_free(connection: Connection, name: str, free_at: datetime) -> None:
    connection.execute(
        update(destinations).where(destinations.c.name == name).values(free_at=free_at)
    )
