"""Ledger writer of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection

from tocsin.errors import InvestigationFailed
from tocsin.investigations.runs.lease import RunLease, RunLeaseLost, confirm_lease
from tocsin.investigations.sessions.ledger import LedgerStep, append_steps, drop_steps
from tocsin.store import Database

MAX_STEPS = 2_000


@dataclass(frozen=True, slots=True)
class LedgerChanges:
    """What is to be written to a ledger."""

    steps: tuple[LedgerStep, ...] = ()
    dropped: int | None = None
    """From which number on to forget what stands there."""


def store_changes(connection: Connection, lease: RunLease, added: LedgerChanges) -> None:
    """Write to the ledger; raises Superseded where the lease is lost."""
    confirm_lease(connection, lease)
    if added.dropped is not None:
        drop_steps(connection, lease.session_id, added.dropped)
    append_steps(connection, lease.session_id, added.steps)


class LedgerRecorder:
    """The steps of one run, those that stand in the ledger and those to be written."""

    def __init__(
        self, database: Database, lease: RunLease, recorded: Iterable[LedgerStep], first: int = 1
    ) -> None:
        self._database = database
        self._lease = lease
        self._recorded = {step.number: step for step in recorded}
        self._first = self._next = first
        self._to_write: list[LedgerStep] = []
        self._dropped: int | None = None
        self._writing = asyncio.Lock()
        self.trouble: BaseException | None = None
        """Why nothing more can be written."""

    @property
    def elapsed(self) -> timedelta:
        """How long the run had taken when it was last written to."""
        return max((step.elapsed for step in self._recorded.values()), default=timedelta(0))

    @property
    def count(self) -> int:
        """How many steps the run has taken."""
        return self._next - self._first

    def allot(self, count: int) -> range:
        """Return the numbers of the next steps; InvestigationFailed where those are too many."""
        self._check()
        if self.count + count > MAX_STEPS:
            raise InvestigationFailed(f"it would have taken more than {MAX_STEPS} steps")
        self._next += count
        return range(self._next - count, self._next)

    def find(self, number: int) -> LedgerStep | None:
        """Return the step that another node has written, None where it has not come so far."""
        return self._recorded.get(number)

    def drop_from(self, number: int) -> None:
        """Forget what was written from this step on: this time, it is another."""
        self._dropped = number if self._dropped is None else min(number, self._dropped)
        self._recorded = {at: step for at, step in self._recorded.items() if at < number}

    def add(self, step: LedgerStep) -> None:
        """Have a step written with those that follow; nobody waits for it."""
        self._check()
        self._to_write.append(step)

    async def write(self, step: LedgerStep) -> None:
        """Return once the step is stored. Raises Superseded where the lease is lost."""
        self.add(step)
        await asyncio.sleep(0)  # what comes at the same moment goes along
        async with self._writing:
            self._check()
            if self._to_write:  # else it went along with another
                await self._write()

    async def _write(self) -> None:
        added = self.take()
        try:
            await self._database.write(store_changes, self._lease, added)
        except asyncio.CancelledError:
            self.stop()
            raise
        except Exception as error:
            self.stop(error)
            raise

    def take(self) -> LedgerChanges:
        """Return what is still to be written, once: what was tried may be there."""
        added = LedgerChanges(tuple(self._to_write), self._dropped)
        self._to_write, self._dropped = [], None
        return added

    def stop(self, trouble: BaseException | None = None) -> None:
        """Take no more steps: whoever tries is told the trouble."""
        self.trouble = self.trouble or trouble or RunLeaseLost("this run has ended")

    def _check(self) -> None:
        if self.trouble is not None:
            raise self.trouble
