"""A SIEM that sends what changes to the API's endpoint.

What applies of the Day: every version of every case, what is late, entities that come later, what
is malformed, and the SIEM's clock. Its faults do not, being answers of a SIEM that is asked; what
goes wrong with what is sent instead is `Trouble`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta

import orjson

from tocsin.testing import Case, Siem
from truth.entrant import Course, Entrant, Known, Turn, known_of
from truth.line import open_line
from truth.sender import Sender

POLL = timedelta(minutes=5)


class Pushed(Entrant):
    """A SIEM that sends to the provider `push`."""

    name = "push"

    @asynccontextmanager
    async def begin(self, day, clock, folder) -> AsyncIterator[Course]:
        siem = Siem(clock)
        self._sender = Sender(siem, day.end)
        skews = deque(mishap for mishap in day.mishaps if mishap.skew is not None)
        cases: list[Case] = []

        def unfold() -> None:
            while skews and skews[0].at <= clock.now():
                siem.skew = skews.popleft().skew
            for case in map(siem.put, day.due(clock.now())):
                cases.append(case)
                self._sender.plan(case)

        yield Course(
            settings={},
            play=unfold,
            truth=lambda: truth(case for case in cases if not case.malformed),
            unreadable=lambda: {
                b'"nameless":' + orjson.dumps(case.changed_at) for case in cases if case.malformed
            },
        )

    @asynccontextmanager
    async def open_node(self, course, database, clock) -> AsyncIterator[Turn]:
        async with open_line(course, database, clock) as line:

            async def turn() -> timedelta:
                await self._sender.send_due(line)
                return POLL

            yield turn


def truth(cases: Iterable[Case]) -> dict[str, Known]:
    """Return what is to be known of these versions, which are in order."""
    versions = list(cases)
    latest = {case.id: case for case in versions}
    alerts = Counter(case.id for case in versions)
    return {name: known_of(case, alerts=alerts[name]) for name, case in latest.items()}
