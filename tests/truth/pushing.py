"""A SIEM that sends what changes to the API's endpoint, and every way in which that goes wrong.

What applies of the Day: every version of every case, what is late, entities that come later, what
is malformed, and the SIEM's clock. Its faults do not, being answers of a SIEM that is asked; what
goes wrong with what is sent instead is `Trouble`.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum, auto
from heapq import heappop, heappush
from itertools import count, cycle
from random import Random
from typing import Any

import orjson
from aiohttp import ClientError, ClientResponse
from standardwebhooks import Webhook

from running_api import PUSH_SECRET, PUSH_TOKEN
from tocsin.testing import Case, Siem
from truth.entrant import Course, Entrant, Known, Turn, known_of
from truth.line import Line, open_line

POLL = timedelta(minutes=5)
MOST_AT_ONCE = 3
"""So many versions are sent in one request at most."""
LATEST = timedelta(hours=2)
"""So much later something is sent a second time at most, or once others have overtaken it."""


class Trouble(Enum):
    """What goes wrong with one request."""

    UNANSWERED = auto()
    """The connection ends once all is sent: that may be stored, and is sent again."""
    CRASHED = auto()
    """The node that takes it ends, and another starts."""
    FLOODED = auto()
    """Others have sent as much as is taken: 503, with Retry-After."""
    FORGED = auto()
    """Somebody without credentials sends it first, in other words: 401."""


class Sender:
    """Sends each version of each case until it is taken."""

    def __init__(self, siem: Siem, until: datetime) -> None:
        self._siem = siem
        self._until = until
        self._random = Random(7)
        self._queue: list[tuple[datetime, int, Case]] = []
        self._numbers = count()
        self._troubles = cycle(Trouble)

    def plan(self, case: Case) -> None:
        """Have a version sent, and its entities once they are known."""
        at, known_at = case.visible_at or case.changed_at, case.entities_at
        if known_at is not None:
            self._put(at, replace(case, entities=()))
        self._put(known_at or at, case)
        if self._random.random() < 0.2:
            self._put(at + LATEST * self._random.random(), case)

    async def send_due(self, line: Line) -> None:
        """Send what is due by now, several requests at a time and in no order."""
        due = []
        while self._queue and self._queue[0][0] <= self._siem.clock.now():
            due.append(heappop(self._queue)[2])
        self._random.shuffle(due)
        async with asyncio.TaskGroup() as group:
            while due:
                size = self._random.randint(1, MOST_AT_ONCE)
                group.create_task(self._deliver(line, due[:size]))
                due = due[size:]

    def _put(self, at: datetime, case: Case) -> None:
        heappush(self._queue, (at, next(self._numbers), case))

    async def _deliver(self, line: Line, cases: Sequence[Case]) -> None:
        again_after = LATEST * self._random.random()
        try:
            again_after = await self._send(line, cases)
        except ClientError:
            pass  # the node is gone
        finally:
            if again_after is not None:
                for case in cases:
                    self._put(self._siem.clock.now() + again_after, case)

    async def _send(self, line: Line, cases: Sequence[Case]) -> timedelta | None:
        """Return after how long to send it again, None where it need not be."""
        body, sent = body_of(cases), lambda: None
        headers = self._proof(body)
        match self._trouble():
            case Trouble.UNANSWERED:
                await line.cut(body, headers)
                return LATEST * self._random.random()
            case Trouble.CRASHED:
                sent = line.course.crash
            case Trouble.FLOODED:
                line.flood()
            case Trouble.FORGED:
                response, _ = await line.post(
                    body_of([forged(case) for case in cases]), self._no_proof(body)
                )
                assert response.status in (401, 503)  # flooded, it refuses everyone
        return judge(*await line.post(body, headers, sent), cases)

    def _trouble(self) -> Trouble | None:
        is_due = self._siem.clock.now() < self._until and self._random.random() < 0.05
        return next(self._troubles) if is_due else None

    def _proof(self, body: bytes) -> dict[str, str]:
        """Return the fields that prove in one of the ways there are that we may send this."""
        basic = b64encode(f"anyone:{PUSH_TOKEN}".encode()).decode()
        token = {"Authorization": self._random.choice((f"Bearer {PUSH_TOKEN}", f"Basic {basic}"))}
        return self._random.choice((token, self._signature(body)))

    def _no_proof(self, other: bytes) -> dict[str, str]:
        return self._random.choice(({}, {"Authorization": "Bearer wrong"}, self._signature(other)))

    def _signature(self, body: bytes) -> dict[str, str]:
        now, name = self._siem.now(), f"msg_{next(self._numbers)}"
        return {
            "webhook-id": name,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": Webhook(PUSH_SECRET).sign(name, now, body.decode()),
        }


def body_of(cases: Sequence[Case]) -> bytes:
    """Return what is sent of these versions: one by itself or several; some are not even JSON."""
    shapes = [malformed(case) if case.malformed else shape(case) for case in cases]
    body = orjson.dumps(shapes if len(shapes) > 1 else shapes[0])
    is_cut = len(cases) == 1 and cases[0].malformed and cases[0].number % 2
    return body[:-1] if is_cut else body


def shape(case: Case) -> dict[str, Any]:
    """Return a version in Tocsin's own shape, with an alert of its own."""
    return {
        "external_id": case.id,
        "title": case.title,
        "description": case.description,
        "severity": case.severity,
        "status": case.status,
        "occurred_at": case.created_at,
        "changed_at": case.changed_at,
        "merged_into": case.merged_into,
        "entities": [{"kind": entity.kind, "value": entity.value} for entity in case.entities],
        "alerts": [{"external_id": case.changed_at.isoformat()}],
    }


def malformed(case: Case) -> dict[str, Any]:
    return {"nameless": case.changed_at, "title": case.title[:100]}


def forged(case: Case) -> Case:
    return replace(case, title="Nothing happened", changed_at=case.changed_at + LATEST)


def judge(
    response: ClientResponse, answer: dict[str, Any], cases: Sequence[Case]
) -> timedelta | None:
    """Return after how long to send it again, None where it is taken or need not be."""
    rejected = sum(case.malformed for case in cases)
    if response.status == 503:
        return timedelta(seconds=int(response.headers["Retry-After"]))
    if response.status == 422:
        assert rejected == len(cases), answer
    else:
        assert response.status == 200, answer
        assert (answer["received"], answer["rejected"]) == (len(cases), rejected)
    return None


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
            unfold=unfold,
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
