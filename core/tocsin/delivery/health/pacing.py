"""How many deliveries a destination may have now: its holds, and its rate over all nodes."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, select, update

from tocsin.clock import Clock
from tocsin.delivery.destinations.records import Destination, load_destination
from tocsin.hookspecs import Channel
from tocsin.store import Database
from tocsin.store.tables import destinations

FRESH = timedelta(milliseconds=500)
"""Nothing is claimed or attempted under a reading of its destination that is older."""
_MINUTE = timedelta(minutes=1)
_LONGEST_DEBT = timedelta(minutes=1)  # more than the clocks of nodes differ


class Admission:
    """Says how many deliveries may go to one destination, as it is at that moment."""

    def __init__(
        self, destination: Destination, settings: Channel.Settings, database: Database, clock: Clock
    ) -> None:
        self.destination = destination
        """As it was read last."""
        self._settings = settings
        self._database = database
        self._clock = clock
        self._read_at = clock.now()
        self._is_served = True
        self._turns = 0

    async def allow(self, wanted: int) -> int:
        """Return how many of the wanted deliveries may be claimed now."""
        if not await self._is_current():
            return 0
        name, now, held_until = self._name, self._clock.now(), self.destination.standing.held_until
        if held_until is not None:
            again = self._settings.probe_interval
            due = held_until <= now
            return int(due and await self._database.write(try_probe, name, now, again))
        if self._interval is None:
            return wanted
        self._turns = await self._database.write(take_turns, name, wanted, self._interval, now)
        return self._turns

    async def give_back(self, unused: int) -> None:
        """Make possible again what was allowed and not needed."""
        turns, self._turns = min(unused, self._turns), 0
        if self._interval is not None and turns:
            await self._database.write(give_back_turns, self._name, turns, self._interval)

    async def is_open(self) -> bool:
        """Return whether an attempt may begin: served as it was configured, and not held since."""
        if not await self._is_current():
            return False
        held_until = self.destination.standing.held_until
        return held_until is None or held_until <= self._clock.now()

    @property
    def _name(self) -> str:
        return self.destination.name

    @property
    def _interval(self) -> timedelta | None:
        limit = self._settings.rate_limit
        return None if limit is None else _MINUTE / limit

    async def _is_current(self) -> bool:
        """Return whether the destination is served, and in this revision; not read too often."""
        now = self._clock.now()
        is_served = self._is_served and self.destination.is_served
        if is_served and now - self._read_at <= FRESH:
            return True
        found = await self._database.lookup(load_destination, self._name)
        self._is_served = (
            found is not None and found.is_served and found.revision == self.destination.revision
        )
        if self._is_served and found is not None:
            self.destination, self._read_at = found, now
        return self._is_served


def try_probe(connection: Connection, name: str, now: datetime, again: timedelta) -> bool:
    """Return whether it is us who may try one delivery now; nobody else may for a while."""
    statement = (
        update(destinations)
        .where(destinations.c.name == name, destinations.c.held_until <= now)
        .values(held_until=now + again)
    )
    return connection.execute(statement).rowcount == 1


def take_turns(
    connection: Connection, name: str, wanted: int, interval: timedelta, now: datetime
) -> int:
    """Return how many of the wanted attempts the rate allows now, which are then used up.

    The generic cell rate algorithm over one column, so that it holds over all nodes: a turn each
    `interval`, and those of the last second at once.
    """
    row = connection.execute(
        select(destinations.c.free_at).where(destinations.c.name == name).with_for_update()
    ).one()
    saved = max(timedelta(seconds=1), interval)
    free_at = max(row.free_at or now - saved, now - saved)
    if free_at > now + _LONGEST_DEBT + interval:  # the clock was set back
        free_at = now
    turns = max(0, min(wanted, (now - free_at) // interval))
    _set_free(connection, name, free_at + turns * interval)
    return turns


def give_back_turns(connection: Connection, name: str, unused: int, interval: timedelta) -> None:
    """Make attempts possible that were not needed."""
    row = connection.execute(
        select(destinations.c.free_at).where(destinations.c.name == name).with_for_update()
    ).one()
    _set_free(connection, name, row.free_at - unused * interval)


def _set_free(connection: Connection, name: str, free_at: datetime) -> None:
    connection.execute(
        update(destinations).where(destinations.c.name == name).values(free_at=free_at)
    )
