"""Ledger writer of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection

from tocsin.errors import InvestigationFailed
from tocsin.investigations.runs.lease import RunLease, RunLeaseLost
from tocsin.investigations.sessions import LedgerStep, StepPacker, append_steps, drop_steps
from tocsin.store import Database

MAX_STEPS = 2_000


@dataclass(frozen=True, slots=True)
class LedgerChanges:
    """Pending changes to a ledger."""

    steps: tuple[LedgerStep, ...] = ()
    dropped: int | None = None
    """Number of the first step to delete; None to delete nothing."""


def store_changes(
    connection: Connection,
    lease: RunLease,
    added: LedgerChanges,
    packer: StepPacker | None = None,
) -> None:
    """Write to the ledger; raises `RunLeaseLost` where the lease is lost."""
    lease.confirm(connection)
    if added.dropped is not None:
        drop_steps(connection, lease.session_id, added.dropped)
    append_steps(connection, lease.session_id, added.steps, packer)


class LedgerRecorder:
    """The steps of one run: those in the ledger and those still to be written."""

    def __init__(
        self, database: Database, lease: RunLease, recorded: Iterable[LedgerStep], first: int = 1
    ) -> None:
        self._database = database
        self._lease = lease
        self._recorded = {step.number: step for step in recorded}
        self._first = self._next = first
        self._to_write: list[LedgerStep] = []
        self._dropped: int | None = None
        self._packer = StepPacker()
        self._writing = asyncio.Lock()
        self.error: BaseException | None = None
        """The error after which nothing more can be written."""

    @property
    def elapsed(self) -> timedelta:
        """Duration of the run at its last recorded step."""
        return max((step.elapsed for step in self._recorded.values()), default=timedelta(0))

    @property
    def count(self) -> int:
        """Number of steps that the run has taken."""
        return self._next - self._first

    def allot(self, count: int) -> range:
        """Return the numbers of the next steps. Raises InvestigationFailed beyond the maximum."""
        self._check()
        if self.count + count > MAX_STEPS:
            raise InvestigationFailed(f"the investigation exceeds {MAX_STEPS} steps")
        self._next += count
        return range(self._next - count, self._next)

    def find(self, number: int) -> LedgerStep | None:
        """Return a step that another node has recorded, None if there is none of this number."""
        return self._recorded.get(number)

    def drop_from(self, number: int) -> None:
        """Discard the recorded steps from this number on, since the run differs from them."""
        self._dropped = number if self._dropped is None else min(number, self._dropped)
        self._recorded = {at: step for at, step in self._recorded.items() if at < number}
        self._packer.drop_from(number)

    def add(self, step: LedgerStep) -> None:
        """Queue a step to be written with the next ones."""
        self._check()
        self._to_write.append(step)

    async def write(self, step: LedgerStep) -> None:
        """Store a step with those that are queued. Raises RunLeaseLost if the lease is lost."""
        self.add(step)
        await asyncio.sleep(0)  # lets concurrent steps join this write
        async with self._writing:
            self._check()
            if self._to_write:  # otherwise another write has taken it along
                await self._write()

    async def _write(self) -> None:
        added = self.take()
        try:
            await self._database.write(store_changes, self._lease, added, self._packer)
        except asyncio.CancelledError:
            self.stop()
            raise
        except Exception as error:
            self.stop(error)
            raise

    def take(self) -> LedgerChanges:
        """Return the pending changes and clear them, since a failed write may have stored them."""
        added = LedgerChanges(tuple(self._to_write), self._dropped)
        self._to_write, self._dropped = [], None
        return added

    def stop(self, error: BaseException | None = None) -> None:
        """Reject all further steps with an error."""
        self.error = self.error or error or RunLeaseLost("this run has ended")

    def _check(self) -> None:
        if self.error is not None:
            raise self.error
