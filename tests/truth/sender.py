"""A SIEM that sends each version of each case, and every way in which that goes wrong."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum, auto
from heapq import heappop, heappush
from itertools import count, cycle
from random import Random

from aiohttp import ClientError
from standardwebhooks import Webhook

from api_server import PUSH_SECRET, PUSH_TOKEN
from tocsin.testing import Case, Siem
from truth.line import Line
from truth.message import body_of, forged, judge

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
