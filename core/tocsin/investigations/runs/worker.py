"""Worker that claims, runs, renews and releases sessions on a node."""

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
from tocsin.events import Notifiers
from tocsin.hookspecs import Investigator
from tocsin.investigations.answers import QuestionHandler
from tocsin.investigations.metrics import InvestigationMetrics
from tocsin.investigations.runs.assignment import load_assignment
from tocsin.investigations.runs.attempt import RunAttempt, is_transient
from tocsin.investigations.runs.completion import (
    FailureCause,
    Finisher,
    RunFailure,
    RunResult,
    finish_run,
)
from tocsin.investigations.runs.finishers import build_relation_finisher
from tocsin.investigations.runs.lease import (
    RunLease,
    RunLeaseLost,
    claim_runs,
    has_active_sessions,
    release_leases,
    renew_leases,
)
from tocsin.investigations.sessions import INVESTIGATIONS
from tocsin.loops import run_forever, was_cancelled
from tocsin.model import Marking
from tocsin.store import Database
from tocsin.tracing import span

POLL = timedelta(seconds=1)
MAX_RUNS = 4
STOP_TIMEOUT = timedelta(seconds=10)
"""Time in which a cancelled investigator may clean up; then its task is abandoned."""
MAX_ATTEMPTS = 5
"""A run that was lost with this many nodes is assumed to be the cause."""
NOT_STORED = RunFailure(
    FailureCause.INTERNAL, "the report could not be stored; see the service log"
)
_log = structlog.get_logger()


class InvestigationWorker:
    """Runs queued sessions, and those whose node is gone, a few at a time."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        notifiers: Notifiers,
        node: int,
        *,
        investigator: Investigator | None,
        answer: QuestionHandler,
        finishers: Sequence[Finisher] = (),
        markings: Mapping[str, Marking] = MappingProxyType({}),
        meter: InvestigationMetrics | None = None,
        at_once: int = MAX_RUNS,
        patience: timedelta = STOP_TIMEOUT,
    ) -> None:
        """Take the marking of each provider's events; events of others are TLP:RED.

        Without an investigator, sessions stay queued.
        """
        self._database = database
        self._clock = clock
        self._notifier = notifiers[INVESTIGATIONS]
        self._node = node
        self.investigator = investigator
        """Runs the sessions that start from now on."""
        self._answer = answer
        self._finishers = (build_relation_finisher(markings), *finishers)
        self._meter = meter or InvestigationMetrics()
        self.at_once = at_once
        """How many sessions run at the same time."""
        self._patience = patience
        self._tasks: dict[RunLease, asyncio.Task[None]] = {}
        self._attempts: dict[RunLease, RunAttempt] = {}
        self._to_release: list[RunLease] = []

    async def run(self) -> None:
        """Run sessions until cancelled, then release the active ones to other nodes."""
        try:
            await run_forever(self._step, self._clock, "investigation worker")
        finally:
            await self._finish()

    async def _step(self) -> None:
        await self.keep()
        await self.claim()
        await self._notifier.wait(POLL)

    async def keep(self) -> None:
        """Renew active leases, and stop runs that are late, cancelled or lost."""
        for attempt in self._attempts.values():
            attempt.tick()
        await self._renew()
        for attempt in list(self._attempts.values()):
            if attempt.is_stuck(self._patience):
                await self._abandon(attempt)
        if given := list(self._to_release):
            await self._database.write(release_leases, given)
            del self._to_release[: len(given)]  # there may be more by now

    async def _renew(self) -> None:
        held = {
            attempt.lease: attempt.progress
            for attempt in self._attempts.values()
            if attempt.is_held
        }
        lost = await self._database.write(renew_leases, held, self._clock.now()) if held else ()
        for lease in lost:
            if attempt := self._attempts.get(lease):
                attempt.mark_lost()
                self._tasks[lease].cancel()

    async def _abandon(self, attempt: RunAttempt) -> None:
        """End a run whose investigator does not stop, and abandon its task."""
        lease = attempt.lease
        _log.error("investigator still running after cancellation", session=lease.session_id)
        if attempt.is_held:
            with suppress(RunLeaseLost):
                await self._end(attempt, attempt.abandon())
        self._leave(lease)

    async def claim(self) -> None:
        """Claim as many sessions as there is room for."""
        room, investigator = self.at_once - len(self._tasks), self.investigator
        if room <= 0 or investigator is None:
            return
        if not await self._database.lookup(has_active_sessions):
            return
        for lease in await self._database.write(claim_runs, self._node, room, self._clock.now()):
            task = asyncio.create_task(self._work(lease, investigator))
            self._tasks[lease] = task
            task.add_done_callback(partial(self._leave, lease))
        self._meter.note_running(len(self._tasks))

    def _leave(self, lease: RunLease, _: asyncio.Task[None] | None = None) -> None:
        self._tasks.pop(lease, None)
        self._attempts.pop(lease, None)
        self._meter.note_running(len(self._tasks))
        self._notifier.notify()

    async def _work(self, lease: RunLease, investigator: Investigator) -> None:
        try:
            with span("investigation.run", {"session_id": lease.session_id}):
                await self._attempt(lease, investigator)
        except RunLeaseLost:
            _log.info("lease lost", session=lease.session_id)
        except (Exception, asyncio.CancelledError) as error:
            if was_cancelled():  # its lease is lost, or given back
                raise
            self._report(lease, error)

    def _report(self, lease: RunLease, error: BaseException) -> None:
        """Log a failed run. After a transient error its lease is released, else it expires."""
        if is_transient(error):
            reason = str(getattr(error, "orig", None) or error)
            _log.warning("session released", session=lease.session_id, reason=reason)
            self._to_release.append(lease)
        else:
            _log.error("session not finished", session=lease.session_id, exc_info=error)

    async def _attempt(self, lease: RunLease, investigator: Investigator) -> None:
        is_hopeless = lease.attempt > MAX_ATTEMPTS
        steps = {"with_steps": not is_hopeless}
        assignment = await self._database.read(load_assignment, lease, **steps)
        attempt = RunAttempt(
            lease,
            assignment,
            database=self._database,
            clock=self._clock,
            answer=self._answer,
            meter=self._meter,
        )
        self._attempts[lease] = attempt
        _log.info("investigation started", session=lease.session_id, run=assignment.run)
        if is_hopeless:
            reason = f"{MAX_ATTEMPTS} nodes in a row failed during this run"
            ending = RunResult(failure=RunFailure(FailureCause.LOST, reason))
        else:
            ending = await attempt.execute(investigator)
        await self._end(attempt, ending)

    async def _end(self, attempt: RunAttempt, ending: RunResult) -> None:
        attempt.is_held = False  # a renewal would wait for the end of the run
        try:
            await self._store(attempt, ending)
        except Exception as error:
            if was_cancelled() or is_transient(error) or ending.report is None:
                raise
            facts = {"session": attempt.lease.session_id, "exc_info": error}
            _log.error("report not stored", **facts)
            ending = RunResult(failure=NOT_STORED, added=ending.added)
            await self._store(attempt, ending)
        facts = {"session": attempt.lease.session_id, "run": attempt.assignment.run}
        facts |= {"reason": ending.failure.reason} if ending.failure else {}
        _log.info(f"investigation {ending.status}", **facts)
        self._meter.count_ending(ending.status, attempt.spent)

    async def _store(self, attempt: RunAttempt, ending: RunResult) -> None:
        after = await self._database.write(
            finish_run,
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
        """Cancel all runs and release their leases; recorded questions are not asked again."""
        tasks = dict(self._tasks)
        for task in tasks.values():
            task.cancel()
        if tasks:
            await asyncio.wait(tasks.values(), timeout=self._patience.total_seconds())
        if given := [*tasks, *self._to_release]:
            with suppress(SQLAlchemyError, OSError):  # the leases are free once this node is gone
                await self._database.write(release_leases, given)
