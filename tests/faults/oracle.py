"""What must be true however much went wrong: every event is counted, here and at the receiver."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, select

from tocsin.store import Database
from tocsin.store.tables import deliveries, events

_READING = timedelta(milliseconds=5)
"""By so much two readings of one clock may be rounded apart."""


@dataclass(slots=True)
class Arrival:
    """One attempt, as the receiver saw it."""

    destination: str
    event: str
    at: datetime
    is_accepted: bool = False


@dataclass(slots=True)
class Oracle:
    """Keeps what arrived, and holds it against what was stored."""

    schedules: dict[str, Sequence[timedelta]] = field(default_factory=dict)
    """The retry schedule of each destination; each is to get every event."""
    arrivals: list[Arrival] = field(default_factory=list)
    breaks: list[datetime] = field(default_factory=list)
    """When attempts may have been lost to a kill or a lease's end, or a replay began anew."""

    def by_way(self) -> dict[tuple[str, str], list[Arrival]]:
        """Return the arrivals of each event at each destination, in their order."""
        ways: dict[tuple[str, str], list[Arrival]] = defaultdict(list)
        for arrival in self.arrivals:
            ways[arrival.destination, arrival.event].append(arrival)
        return ways

    def accepted(self, destination: str) -> set[str]:
        """Return the events that a destination has accepted."""
        return {
            arrival.event
            for arrival in self.arrivals
            if arrival.is_accepted and arrival.destination == destination
        }

    def repeats(self) -> int:
        """Return how many times something was accepted that had been before."""
        ways = Counter(
            (arrival.destination, arrival.event) for arrival in self.arrivals if arrival.is_accepted
        )
        return ways.total() - len(ways)

    async def account(self, database: Database) -> None:
        """Fail unless every event is delivered or dead with a reason, and on its schedule."""
        wrong = [*await database.read(self._unexplained), *self._unscheduled()]
        assert not wrong, "\n".join(wrong)

    def _unexplained(self, connection: Connection) -> list[str]:
        known = list(connection.scalars(select(events.c.id)))
        rows = {
            (row["destination"], row["event_id"]): row
            for row in connection.execute(select(deliveries)).mappings()
        }
        ways = ((name, event) for name in self.schedules for event in known)
        accepted = {name: self.accepted(name) for name in self.schedules}
        wrong = [
            f"{event} for {name}: {rows.get((name, event))}"
            for name, event in ways
            if not _is_explained(rows.get((name, event)), was_accepted=event in accepted[name])
        ]
        strangers = {arrival.event for arrival in self.arrivals} - set(known)
        return [*wrong, *(f"{event} arrived and is not stored" for event in strangers)]

    def _unscheduled(self) -> Iterator[str]:
        for (name, event), arrivals in self.by_way().items():
            moments = [arrival.at for arrival in arrivals]
            schedule, uncounted = self.schedules[name], 0
            for number, (earlier, later) in enumerate(pairwise(moments)):
                if any(earlier <= moment <= later for moment in self.breaks):
                    uncounted += 1
                    continue
                wait = schedule[number - uncounted] if number - uncounted < len(schedule) else None
                if wait is None:
                    yield f"{event} came to {name} {len(moments)} times"
                elif later - earlier < wait - _READING:
                    yield f"{event} came to {name} again after {later - earlier}, before {wait}"


def _is_explained(row: Any, *, was_accepted: bool) -> bool:
    if row is None:
        return False
    is_dead = row["state"] == "dead" and bool(row["reason"])
    return is_dead or (row["state"] == "delivered" and was_accepted)
