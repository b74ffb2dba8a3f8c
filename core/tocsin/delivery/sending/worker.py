"""Delivery loops: one worker for each destination that this node serves."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from tocsin.delivery.destinations.repository import Destination
from tocsin.delivery.health.breaker import AttemptVerdict, HealthStatus, PausePolicy
from tocsin.delivery.health.health_status import record_verdicts
from tocsin.delivery.health.rate_limiter import DeliveryRateLimiter
from tocsin.delivery.metrics.meters import DeliveryMeter
from tocsin.delivery.queue.queue import HEARTBEAT, DeliveryQueue
from tocsin.delivery.queue.states import AttemptResult, ClaimedDelivery, Vacancy
from tocsin.delivery.rendering import Renderer
from tocsin.delivery.sending.attempts import GRACE, AttemptRunner, log_attempts, log_transition
from tocsin.events import Notifier
from tocsin.hookspecs import Channel
from tocsin.loops import run_forever, run_to_end, wait_for_event
from tocsin.store import LEASE_DURATION, Database

POLL = timedelta(seconds=1)
IDLE_POLL = HEARTBEAT
"""How often an idle worker looks for work itself; the pool looks every second for all workers."""
AHEAD = 8
"""Maximum number of unstored results per concurrent slot; a crash repeats only these attempts."""
_LEAST_CLAIMS, _MOST_CLAIMS = 8, 32  # per concurrent slot
_STOCK_SECONDS = 0.25  # claims last about as long, within these limits
_FASTEST = 0.001  # seconds of an attempt, for the same
LINGER = 0.01  # seconds that results wait to be stored together, unless attempts wait for them
_SAYS_NOTHING = (AttemptVerdict.HEALTHY, AttemptVerdict.NOTHING)
_log = structlog.get_logger()


class Worker:
    """Delivers to one revision of one destination."""

    def __init__(
        self,
        destination: Destination,
        channel: Channel,
        *,
        renderer: Renderer,
        queue: DeliveryQueue,
        database: Database,
        notifier: Notifier,
        vacancy_notifier: Notifier,
        meter: DeliveryMeter,
    ) -> None:
        self.name = destination.name
        self.notifier = notifier
        self._vacancy_notifier = vacancy_notifier
        self._meter = meter
        self._limiter = DeliveryRateLimiter(destination, channel, database)
        self._settings = channel.settings
        self._in_order = channel.ordered or channel.settings.ordered
        self._tenant_key = channel.tenant_key
        self._attempts = AttemptRunner(channel, renderer)
        self._queue = queue
        self._database = database
        self._clock = channel.tools.clock
        self._extended_at = self._clock.now()
        self._waiting: deque[ClaimedDelivery] = deque()  # for one that is under way to end
        self._under_way: dict[asyncio.Task[None], ClaimedDelivery] = {}
        self._leased_until: dict[str, datetime] = {}
        self._begun: set[str] = set()  # ids of deliveries of which an attempt is under way
        self._ended: list[AttemptResult] = []
        self._throttled = 0  # of those that ended
        self._is_ending = False
        self._reserved = 0  # room for deliveries that routing is storing
        self._may_have_more = False  # for a claim, when there is room
        self._has_ended = Notifier()
        self._has_settled = asyncio.Event()
        self._is_full = asyncio.Event()  # an attempt waits until results are stored
        self._writing = asyncio.Lock()
        self._most: int = self._settings.concurrency * _LEAST_CLAIMS
        self._most_unstored: int = self._settings.concurrency * AHEAD
        self._longest = self._settings.timeout + GRACE
        self._pause_policy = PausePolicy(
            self._settings.pause_after,
            self._settings.pause_after_failures,
            self._settings.probe_interval,
        )

    def render_with(self, renderer: Renderer) -> None:
        """Use other templates for attempts that begin from now on."""
        self._attempts.renderer = renderer

    async def run(self) -> None:
        """Claim, deliver and settle until cancelled; `finish` handles deliveries in progress."""
        async with asyncio.TaskGroup() as loops:
            for step, what in ((self._claim_step, "claiming"), (self._settle_step, "settling")):
                loops.create_task(run_forever(step, self._clock, what, destination=self.name))

    async def _claim_step(self) -> None:
        if not await self.claim() or not self._may_have_more:
            await self.notifier.wait(IDLE_POLL)

    async def _settle_step(self) -> None:
        await self._has_ended.wait(POLL if self._under_way or self._ended else IDLE_POLL)
        if len(self._ended) < self._most_unstored / 2:
            await wait_for_event(self._is_full, LINGER)
        try:
            await self.settle()
        finally:
            if self._clock.now() - self._extended_at >= HEARTBEAT:
                await self.extend()

    @property
    def revision(self) -> int:
        """The destination's revision that this worker serves."""
        return self._limiter.destination.revision

    @property
    def vacancy(self) -> Vacancy | None:
        """Room for deliveries that routing leases to this worker.

        None if there is no room, if all deliveries need a claim, or if others must be claimed
        first.
        """
        if not self._takes_leases or self._may_have_more or not self._has_room:
            return None
        return Vacancy(self._room, self._tenant_key)

    @property
    def is_prompt(self) -> bool:
        """Whether routing can lease deliveries to this worker, and its receiver responds fast."""
        return self._takes_leases and self._most > self._settings.concurrency * _LEAST_CLAIMS

    @property
    def _takes_leases(self) -> bool:
        needs_claim = self._in_order or not self._limiter.is_unlimited
        return not (needs_claim or self._is_ending or self._is_overloaded)

    def reserve(self) -> Vacancy | None:
        """Return the vacancy, and do not claim deliveries for it until `leave_room` is called."""
        vacancy = self.vacancy
        self._reserved = 0 if vacancy is None else vacancy.most
        return vacancy

    def leave_room(self) -> None:
        """Release the reserved room."""
        if self._reserved:
            self._reserved = 0
            self._offer_room()

    async def accept(self, leased: Sequence[ClaimedDelivery]) -> None:
        """Attempt the deliveries that were leased for the reserved room; release them if ending."""
        if self._is_ending:
            await self._queue.release(leased, self._clock.now())
        else:
            self._begin(leased)
        self.leave_room()

    def wake(self) -> None:
        """Claim now; the destination has work."""
        self._limiter.expire()
        self.notifier.notify()

    async def claim(self) -> int:
        """Claim as many due deliveries as there is room for, and return their number.

        The worker claims more deliveries than it has free slots, to need fewer transactions.
        """
        if not self._has_room or self._is_overloaded:
            self._may_have_more = True
            return 0
        return await run_to_end(self._claim(self._room))

    @property
    def _is_overloaded(self) -> bool:
        """Whether the receiver has signaled an overload that is not stored yet."""
        return self._throttled > 0

    @property
    def _room(self) -> int:
        held = len(self._waiting) + len(self._under_way) + len(self._ended)
        return self._most - held - self._reserved

    @property
    def _has_room(self) -> bool:
        """Whether there is enough room for a claim to be worth its transaction."""
        return self._room >= self._most / 2

    async def _claim(self, room: int) -> int:
        permit = await self._limiter.permit(room, self._is_claimable)
        if not permit.most:
            return 0
        now = self._clock.now()
        claims = await self._queue.claim(
            self.name,
            permit.most,
            now,
            in_order=self._in_order,
            early=permit.is_early,
            tenant_key=self._tenant_key,
        )
        self._begin(claims)
        if len(claims) < permit.most and not self._in_order:
            self._may_have_more = False  # other nodes have claimed the rest
            self._offer_room()
        await self._limiter.give_back(permit, len(claims))
        return len(claims)

    async def _is_claimable(self, early: bool) -> bool:
        now, in_order = self._clock.now(), self._in_order
        found = await self._queue.has_claimable(self.name, now, in_order=in_order, early=early)
        self._may_have_more = found or in_order  # others of a subject wait for the first to end
        if not self._may_have_more:
            self._offer_room()
        return found

    def _begin(self, claims: Sequence[ClaimedDelivery]) -> None:
        for claimed in claims:
            self._leased_until[claimed.id] = claimed.leased_until
        self._waiting.extend(claims)
        self._begin_waiting()
        if claims:
            self._has_ended.notify()  # their leases are to be extended

    def _begin_waiting(self) -> None:
        while self._waiting and len(self._under_way) < self._settings.concurrency:
            claimed = self._waiting.popleft()
            task = asyncio.create_task(self._deliver(claimed))
            self._under_way[task] = claimed
            task.add_done_callback(self._leave)

    async def _deliver(self, claimed: ClaimedDelivery) -> None:
        while self._unstored >= self._most_unstored and not self._is_ending:
            self._has_settled.clear()
            self._is_full.set()
            await self._has_settled.wait()
        now = self._clock.now()
        if not (is_open := self._limiter.is_known_open(now)):
            is_open = await self._is_open()
            now = self._clock.now()
        if self._leased_until[claimed.id] < now + self._longest:
            return  # the database was away for long; it is due again when its lease expires
        if self._is_ending or self._is_overloaded or not is_open:
            await self._queue.release([claimed], now)
            return
        self._begun.add(claimed.id)
        attempt = await self._attempts.make(claimed)
        self._begun.discard(claimed.id)
        self._ended.append(attempt)
        self._throttled += attempt.verdict is AttemptVerdict.THROTTLED
        self._has_ended.notify()

    @property
    def _unstored(self) -> int:
        """Number of attempts that are in progress or whose results are not stored yet."""
        return len(self._begun) + len(self._ended)

    async def _is_open(self) -> bool:
        """Return whether attempts may begin; wait while the database is unavailable."""
        while True:
            try:
                return await self._limiter.is_open()
            except (OSError, DBAPIError, PoolTimeout):
                await self._clock.sleep(POLL)

    def _leave(self, task: asyncio.Task[None]) -> None:
        claimed = self._under_way.pop(task)
        self._leased_until.pop(claimed.id, None)
        if not task.cancelled():
            self._begun.discard(claimed.id)
        self._begin_waiting()
        self._offer_room()
        if not task.cancelled() and (error := task.exception()) is not None:
            facts = {"destination": self.name, "id": claimed.id}
            _log.warning("not attempted; due when its lease expires", **facts, reason=str(error))

    def _offer_room(self) -> None:
        if self._has_room:
            notifier = self.notifier if self._may_have_more else self._vacancy_notifier
            notifier.notify()

    async def extend(self) -> None:
        """Extend the leases of deliveries in progress and of deliveries with unstored results."""
        claims, now = [*self._under_way.values(), *self._waiting], self._clock.now()
        claims += [attempt.claimed for attempt in self._ended]
        self._extended_at = now
        if not claims:
            return
        lost = {claimed.id for claimed in await self._queue.extend(claims, now)}
        for id_ in {claimed.id for claimed in claims}.intersection(self._leased_until):
            self._leased_until[id_] = now if id_ in lost else now + LEASE_DURATION

    async def settle(self) -> None:
        """Store all results that are not stored yet."""
        await run_to_end(self._settle())

    async def _settle(self) -> None:
        async with self._writing:
            ended = list(self._ended)
            if not ended:
                return
            late = await self._queue.settle(ended)
            self._most = self._settings.concurrency * _choose_ahead(ended)
            self._meter.count(ended, late)
            log_attempts(self.name, ended, late)
            try:
                await self._record_verdicts(ended)
            finally:
                del self._ended[: len(ended)]
                self._throttled -= sum(
                    attempt.verdict is AttemptVerdict.THROTTLED for attempt in ended
                )
                self._is_full.clear()
                self._has_settled.set()
        self._offer_room()

    async def _record_verdicts(self, ended: Sequence[AttemptResult]) -> None:
        destination = self._limiter.destination
        is_well = destination.health == HealthStatus()
        if is_well and all(attempt.verdict in _SAYS_NOTHING for attempt in ended):
            return
        change = await self._database.write_behind(
            record_verdicts, destination, ended, self._pause_policy, self._clock.now()
        )
        if change is not None:
            self._limiter.destination = change.after
            log_transition(change)
            self.notifier.notify()

    async def finish(self, at_most: timedelta) -> None:
        """Let attempts finish within a time limit, store the results, and release the rest."""
        self._is_ending = True
        self._has_settled.set()
        waiting = [*self._waiting]
        self._waiting.clear()
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=at_most.total_seconds())
        given_up = dict(self._under_way)
        for task in given_up:
            task.cancel()
        await asyncio.gather(*given_up, return_exceptions=True)
        try:
            await self.settle()
        finally:
            await self._give_back([*given_up.values(), *waiting])

    async def _give_back(self, claims: Sequence[ClaimedDelivery]) -> None:
        """Release abandoned deliveries; if an attempt had begun, the delivery may have arrived."""
        for begun in (True, False):
            chosen = [claimed for claimed in claims if (claimed.id in self._begun) is begun]
            if chosen:
                await self._queue.release(chosen, self._clock.now(), begun=begun)


def _choose_ahead(ended: Sequence[AttemptResult]) -> int:
    """Return how many claims to hold per slot: more if the receiver responds faster.

    With more claims, one transaction routes more events or claims more deliveries. With a slow
    receiver, deliveries are left to other nodes.
    """
    spent = sum((each.ended_at - each.started_at).total_seconds() for each in ended) / len(ended)
    wanted = int(_STOCK_SECONDS / max(spent, _FASTEST))
    return min(max(wanted, _LEAST_CLAIMS), _MOST_CLAIMS)
