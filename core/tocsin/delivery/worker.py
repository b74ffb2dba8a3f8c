"""The two loops of delivery: one routes events, one per destination delivers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import structlog

from tocsin.clock import Clock, isoformat
from tocsin.delivery import queue
from tocsin.delivery.attempting import GRACE, Attempts
from tocsin.delivery.queue import Attempt, Claimed
from tocsin.delivery.rendering import Renderer
from tocsin.delivery.routing import Route, route
from tocsin.events import Bell
from tocsin.hookspecs import Channel
from tocsin.loops import run_forever
from tocsin.store import Database

_POLL = timedelta(seconds=1)
_BATCH = 200
AHEAD = 8  # times its concurrency, a worker claims at once
LINGER = 0.01  # seconds that attempts wait to be stored with others
_log = structlog.get_logger()


class Router:
    """Turns events into deliveries, and wakes the workers."""

    def __init__(
        self,
        routes: Sequence[Route],
        workers: Sequence[Worker],
        database: Database,
        clock: Clock,
        bell: Bell,
    ) -> None:
        self._routes = routes
        self._workers = workers
        self._database = database
        self._clock = clock
        self._bell = bell

    async def run(self) -> None:
        """Route until cancelled."""
        await run_forever(self._step, self._clock, "routing")

    async def _step(self) -> None:
        if not await self.route_waiting():
            await self._bell.wait(_POLL)

    async def route_waiting(self) -> int:
        """Route what is waiting now, and return how many events that were."""
        routed = await self._database.write(route, self._routes, _BATCH, self._clock.now())
        if routed:
            for worker in self._workers:
                worker.bell.ring()
        return routed


class Worker:
    """Delivers what is due to one destination; a slow one holds up no other."""

    def __init__(self, channel: Channel, renderer: Renderer, database: Database) -> None:
        self.name = channel.tools.name
        self.bell = Bell()
        self._attempts = Attempts(channel, renderer)
        self._concurrency = channel.settings.concurrency
        self._database = database
        self._clock = channel.tools.clock
        self._under_way: dict[asyncio.Task[None], Claimed] = {}
        self._ended: list[Attempt] = []
        self._has_ended = Bell()
        self._writing = asyncio.Lock()
        self._slots = asyncio.Semaphore(self._concurrency)
        self._longest = channel.settings.timeout + GRACE

    async def run(self) -> None:
        """Claim, deliver and settle until cancelled; `finish` sees to what is then under way."""
        async with asyncio.TaskGroup() as loops:
            for step, what in ((self._claim_step, "claiming"), (self._settle_step, "settling")):
                loops.create_task(run_forever(step, self._clock, what, destination=self.name))

    async def _claim_step(self) -> None:
        if not await self.claim():
            await self.bell.wait(_POLL)

    async def _settle_step(self) -> None:
        await self._has_ended.wait(_POLL)
        await asyncio.sleep(LINGER)
        await self.settle()

    async def claim(self) -> int:
        """Claim as many due deliveries as there is room for, and return how many those are.

        Some are claimed ahead of the free slots, so that one transaction serves several.
        """
        most = self._concurrency * AHEAD
        room = most - len(self._under_way) - len(self._ended)
        return await asyncio.shield(self._claim(room)) if room >= most / 2 else 0

    async def _claim(self, room: int) -> int:
        claims = await self._database.write(queue.claim, self.name, room, self._clock.now())
        for claimed in claims:
            task = asyncio.create_task(self._deliver(claimed))
            self._under_way[task] = claimed
            task.add_done_callback(self._leave)
        return len(claims)

    async def _deliver(self, claimed: Claimed) -> None:
        async with self._slots:
            if claimed.leased_until < self._clock.now() + self._longest:
                return  # it waited too long for its slot, and is due again when its lease ends
            attempt = await self._attempts.make(claimed)
        self._ended.append(attempt)
        self._has_ended.ring()

    def _leave(self, task: asyncio.Task[None]) -> None:
        self._under_way.pop(task, None)
        self.bell.ring()

    async def settle(self) -> None:
        """Store how every attempt ended that is not stored yet."""
        await asyncio.shield(self._settle())

    async def _settle(self) -> None:
        async with self._writing:
            ended = list(self._ended)
            if not ended:
                return
            late = await self._database.write(queue.settle, ended)
            del self._ended[: len(ended)]
        self.bell.ring()
        too_late = {attempt.claimed.id for attempt in late}
        for attempt in ended:
            _report(self.name, attempt, late=attempt.claimed.id in too_late)

    async def finish(self, at_most: timedelta) -> None:
        """Let what is under way end, but not for ever; store how it ended, give back the rest."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=at_most.total_seconds())
        given_up = dict(self._under_way)
        for task in given_up:
            task.cancel()
        await asyncio.gather(*given_up, return_exceptions=True)
        await self.settle()
        if given_up:
            claims = list(given_up.values())
            await self._database.write(queue.release, claims, self._clock.now())


def _report(destination: str, attempt: Attempt, *, late: bool) -> None:
    facts = {
        "destination": destination,
        "subject": attempt.claimed.event.subject,
        "event_id": attempt.claimed.event.id,
        "attempt": attempt.claimed.attempt,
        "status": attempt.status,
    }
    if late:
        _log.warning("attempt came too late; its lease had run out", **facts)
    elif attempt.state == queue.DELIVERED:
        _log.info("delivered", **facts)
    elif attempt.state == queue.PENDING:
        again_at = isoformat(attempt.due_at)
        _log.warning("not delivered yet", **facts, reason=attempt.reason, again_at=again_at)
    else:
        _log.error("not delivered, and not tried again", **facts, reason=attempt.reason)
