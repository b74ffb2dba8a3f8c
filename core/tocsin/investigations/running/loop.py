"""The loop of a node that investigates: what it takes up, keeps, ends and gives back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from types import MappingProxyType

import structlog
from sqlalchemy.exc import SQLAlchemyError

from tocsin.clock import Clock
from tocsin.events import Bells
from tocsin.hookspecs import Investigator
from tocsin.investigations.answering.reply import Answer
from tocsin.investigations.following.relating import relate_by
from tocsin.investigations.measuring import Meter
from tocsin.investigations.running.assignment import load_assignment
from tocsin.investigations.running.attempt import Attempt, is_passing
from tocsin.investigations.running.ending import (
    Ending,
    Failure,
    FailureCause,
    Finisher,
    end_run,
)
from tocsin.investigations.running.lease import (
    Lease,
    Superseded,
    claim,
    is_anything_under_way,
    release,
    renew,
)
from tocsin.investigations.sessions.records import INVESTIGATIONS
from tocsin.loops import run_forever, was_cancelled
from tocsin.model import Marking
from tocsin.store import Database

POLL = timedelta(seconds=1)
AT_ONCE = 4
PATIENCE = timedelta(seconds=10)
"""So long an investigator that was told to stop may clean up; then nobody waits for it."""
MOST_ATTEMPTS = 5
"""A run that was lost with so many nodes is taken to be the reason."""
NOT_STORED = Failure(
    FailureCause.INTERNAL, "what it came to could not be stored; the service's log tells more"
)
_log = structlog.get_logger()


class Investigations:
    """Investigates sessions, those that wait and those whose node is gone, a few at a time."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        bells: Bells,
        node: int,
        *,
        investigator: Investigator,
        answer: Answer,
        finishers: Sequence[Finisher] = (),
        markings: Mapping[str, Marking] = MappingProxyType({}),
        meter: Meter | None = None,
        at_once: int = AT_ONCE,
        patience: timedelta = PATIENCE,
    ) -> None:
        """Take how each provider's events are marked; those of others are red."""
        self._database = database
        self._clock = clock
        self._bell = bells[INVESTIGATIONS]
        self._node = node
        self._investigator = investigator
        self._answer = answer
        self._finishers = (relate_by(markings), *finishers)
        self._meter = meter or Meter()
        self._at_once = at_once
        self._patience = patience
        self._tasks: dict[Lease, asyncio.Task[None]] = {}
        self._attempts: dict[Lease, Attempt] = {}
        self._to_give_back: list[Lease] = []

    async def run(self) -> None:
        """Investigate until cancelled; what is then under way is left to other nodes, at once."""
        try:
            await run_forever(self._step, self._clock, "running investigations")
        finally:
            await self._finish()

    async def _step(self) -> None:
        await self.keep()
        await self.claim()
        await self._bell.wait(POLL)

    async def keep(self) -> None:
        """Hold on to what is under way, and stop what is late, cancelled or another node's."""
        for attempt in self._attempts.values():
            attempt.tick()
        await self._renew()
        for attempt in list(self._attempts.values()):
            if attempt.is_stuck(self._patience):
                await self._give_up(attempt)
        if given := list(self._to_give_back):
            await self._database.write(release, given)
            del self._to_give_back[: len(given)]  # there may be more by now

    async def _renew(self) -> None:
        held = {it.lease: it.progress for it in self._attempts.values() if it.is_held}
        lost = await self._database.write(renew, held, self._clock.now()) if held else ()
        for lease in lost:
            if attempt := self._attempts.get(lease):
                attempt.note_loss()
                self._tasks[lease].cancel()

    async def _give_up(self, attempt: Attempt) -> None:
        """End a run whose investigator does not stop, and leave its task to itself."""
        lease = attempt.lease
        _log.error("an investigator does not stop", session=lease.session_id)
        if attempt.is_held:
            with suppress(Superseded):
                await self._end(attempt, attempt.give_up())
        self._leave(lease)

    async def claim(self) -> None:
        """Take up as many sessions as there is room for."""
        room = self._at_once - len(self._tasks)
        if room <= 0 or not await self._database.lookup(is_anything_under_way):
            return
        for lease in await self._database.write(claim, self._node, room, self._clock.now()):
            task = asyncio.create_task(self._work(lease))
            self._tasks[lease] = task
            task.add_done_callback(partial(self._leave, lease))
        self._meter.note_running(len(self._tasks))

    def _leave(self, lease: Lease, _: asyncio.Task[None] | None = None) -> None:
        self._tasks.pop(lease, None)
        self._attempts.pop(lease, None)
        self._meter.note_running(len(self._tasks))
        self._bell.ring()

    async def _work(self, lease: Lease) -> None:
        try:
            await self._attempt(lease)
        except Superseded:
            _log.info("a session is not this node's any more", session=lease.session_id)
        except (Exception, asyncio.CancelledError) as error:
            if was_cancelled():  # its lease is lost, or given back
                raise
            self._report(lease, error)

    def _report(self, lease: Lease, error: BaseException) -> None:
        """Note that a run goes on later: as soon as can be, or when its lease has run out."""
        if is_passing(error):
            reason = str(getattr(error, "orig", None) or error)
            _log.warning("a session goes on later", session=lease.session_id, reason=reason)
            self._to_give_back.append(lease)
        else:
            _log.error("a session could not be ended", session=lease.session_id, exc_info=error)

    async def _attempt(self, lease: Lease) -> None:
        is_hopeless = lease.attempt > MOST_ATTEMPTS
        steps = {"with_steps": not is_hopeless}
        assignment = await self._database.read(load_assignment, lease, **steps)
        attempt = Attempt(
            lease,
            assignment,
            database=self._database,
            clock=self._clock,
            answer=self._answer,
            meter=self._meter,
        )
        self._attempts[lease] = attempt
        _log.info("a session is investigated", session=lease.session_id, run=assignment.run)
        if is_hopeless:
            words = f"it was taken up by {MOST_ATTEMPTS} nodes, each of which was lost"
            ending = Ending(failure=Failure(FailureCause.LOST, words))
        else:
            ending = await attempt.make(self._investigator)
        await self._end(attempt, ending)

    async def _end(self, attempt: Attempt, ending: Ending) -> None:
        attempt.is_held = False  # to renew it would wait until it has ended
        try:
            await self._store(attempt, ending)
        except Exception as error:
            if was_cancelled() or is_passing(error) or ending.report is None:
                raise
            facts = {"session": attempt.lease.session_id, "exc_info": error}
            _log.error("a report could not be stored", **facts)
            ending = Ending(failure=NOT_STORED, added=ending.added)
            await self._store(attempt, ending)
        facts = {"session": attempt.lease.session_id, "run": attempt.assignment.run}
        facts |= {"reason": ending.failure.reason} if ending.failure else {}
        _log.info(f"an investigation has {ending.status}", **facts)
        self._meter.count_ending(ending.status, attempt.spent)

    async def _store(self, attempt: Attempt, ending: Ending) -> None:
        after = await self._database.write(
            end_run,
            attempt.lease,
            attempt.assignment,
            ending,
            progress=attempt.progress,
            finishers=self._finishers,
            now=self._clock.now(),
        )
        for follow in after:
            follow()

    async def _finish(self) -> None:
        """Stop everything, and give it back: what stands in the ledger is not asked again."""
        tasks = dict(self._tasks)
        for task in tasks.values():
            task.cancel()
        if tasks:
            await asyncio.wait(tasks.values(), timeout=self._patience.total_seconds())
        if given := [*tasks, *self._to_give_back]:
            with suppress(SQLAlchemyError, OSError):  # they are free when this node is gone
                await self._database.write(release, given)
