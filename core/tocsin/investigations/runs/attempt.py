"""One run of a session on this node, from its inquiry to its result."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import timedelta
from typing import Any

import structlog

from tocsin.clock import Clock
from tocsin.errors import InvestigationFailed
from tocsin.hookspecs import Investigator
from tocsin.investigations.answers.reply import QuestionHandler
from tocsin.investigations.codec import normalize_report
from tocsin.investigations.evidence import collect_citable, collect_citations
from tocsin.investigations.metrics import InvestigationMetrics
from tocsin.investigations.query_client import SessionQueryClient
from tocsin.investigations.recorder import LedgerRecorder
from tocsin.investigations.runs.assignment import RunAssignment
from tocsin.investigations.runs.completion import FailureCause, RunFailure, RunResult
from tocsin.investigations.runs.lease import RunLease, RunLeaseLost
from tocsin.loops import PLUGIN_FAILURES, was_cancelled
from tocsin.model import Report
from tocsin.store import Database, is_unreachable

INTERNAL_FAILURE = RunFailure(
    FailureCause.INTERNAL, "the investigator had an internal error; the service's log tells more"
)
"""What is shown of an error that only its author can make something of."""
_DEADLOCK = "40P01"  # PostgreSQL undid one of two transactions that waited for each other
_log = structlog.get_logger()


class RunAttempt:
    """What a node does of one run, until it ends or another node goes on with it."""

    def __init__(
        self,
        lease: RunLease,
        assignment: RunAssignment,
        *,
        database: Database,
        clock: Clock,
        answer: QuestionHandler,
        meter: InvestigationMetrics,
    ) -> None:
        self.lease = lease
        self.assignment = assignment
        self._recording = LedgerRecorder(database, lease, assignment.recorded, assignment.first)
        self._desk = SessionQueryClient(assignment.run, self._recording, answer, clock, meter)
        self._limit = asyncio.timeout(None)
        self._is_asking = False
        self._stopped_after: timedelta | None = None
        self.is_held = True
        """Whether its lease is to be renewed: not once it is lost, nor while it is given up."""

    @property
    def progress(self) -> Mapping[str, Any]:
        """How far it is, as it is shown."""
        return self._desk.progress

    @property
    def spent(self) -> timedelta:
        """How long the run has taken, on every node that had it."""
        return self._desk.spent

    def tick(self) -> None:
        """Count the time that passes, and have it fail if it has taken longer than it may."""
        self._desk.tick()
        can_be_late = self.is_held and self._is_asking and not self._limit.expired()
        if can_be_late and self.spent >= self.assignment.timeout:
            self._stopped_after = self.spent
            self._limit.reschedule(asyncio.get_running_loop().time())

    def note_loss(self) -> None:
        """Note that its lease is lost, and that its task was told to stop."""
        self.is_held = False
        self._stopped_after = self.spent

    def is_stuck(self, patience: timedelta) -> bool:
        """Return whether its investigator was told to stop so long ago, and has not."""
        told = self._stopped_after
        return told is not None and self._is_asking and self.spent - told >= patience

    def give_up(self) -> RunResult:
        """Return what it comes to without its investigator, which is answered nothing more."""
        added = self._recording.take()
        self._recording.stop()
        return RunResult(failure=self._lateness, added=added)

    @property
    def _lateness(self) -> RunFailure:
        seconds = self.assignment.timeout.total_seconds()
        return RunFailure(FailureCause.TIMEOUT, f"it was not done within {seconds:g} seconds")

    async def make(self, investigator: Investigator) -> RunResult:
        """Return what the run comes to.

        Raises Superseded where the lease is lost, and what the database raises that is away.
        """
        report, error = None, None
        try:
            report = await self._investigate(investigator)
        except PLUGIN_FAILURES as raised:
            if was_cancelled():
                raise
            error = raised
        failure = self._failure(error)
        added = self._recording.take()
        self._recording.stop()
        desk, report = self._desk, report if failure is None else None
        return RunResult(report, failure, added, desk.told, desk.named)

    async def _investigate(self, investigator: Investigator) -> Report:
        try:
            async with self._limit:
                self._is_asking = True
                report = await investigator.investigate(self.assignment.inquiry, self._desk)
        finally:
            self._is_asking = False
        if not isinstance(report, Report):
            raise TypeError(f"return a Report from `investigate`, not {report!r:.100}")
        return await asyncio.to_thread(_check_report, report, self._citable)

    @property
    def _citable(self) -> AbstractSet[str]:
        previous = self.assignment.inquiry.previous
        return self._desk.citable | (collect_citable(previous) if previous else set())

    def _failure(self, error: BaseException | None) -> RunFailure | None:
        """Return why there is no report, None where there is; raises what will pass."""
        if self._limit.expired():
            return self._lateness
        trouble = self._recording.trouble
        if trouble is not None and is_transient(trouble):
            raise trouble
        error = trouble or error
        if isinstance(error, InvestigationFailed):
            words = str(error) or "the investigator gave no reason"
            return RunFailure(FailureCause.INVESTIGATION, words)
        if error is not None:
            _log.error("an investigator failed", session=self.lease.session_id, exc_info=error)
            return INTERNAL_FAILURE
        return None


def _check_report(report: Report, citable: AbstractSet[str]) -> Report:
    """Return the report as it can be stored; raises where it cannot, or cites what is nowhere."""
    report = normalize_report(report)
    for reference in sorted(collect_citations(report) - citable):
        raise InvestigationFailed(f"its report cites {reference}, which is not in the ledger")
    return report


def is_transient(error: BaseException) -> bool:
    """Return whether it says nothing of the run: another node, or the same later, can go on."""
    if isinstance(error, RunLeaseLost | OSError) or is_unreachable(error):
        return True
    return getattr(getattr(error, "orig", None), "sqlstate", None) == _DEADLOCK
