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
from tocsin.investigations.answers import QuestionHandler
from tocsin.investigations.codec import normalize_report
from tocsin.investigations.evidence import collect_citable, collect_citations
from tocsin.investigations.metrics import InvestigationMetrics
from tocsin.investigations.runs.assignment import RunAssignment
from tocsin.investigations.runs.completion import FailureCause, RunFailure, RunResult
from tocsin.investigations.runs.lease import RunLease, RunLeaseLost
from tocsin.investigations.runs.query_client import SessionQueryClient
from tocsin.investigations.runs.recorder import LedgerRecorder
from tocsin.loops import PLUGIN_FAILURES, was_cancelled
from tocsin.model import Report
from tocsin.plugin_results import require_kind
from tocsin.store import Database, find_fault

INTERNAL_FAILURE = RunFailure(
    FailureCause.INTERNAL, "internal error in the investigator; see the service log"
)
"""Shown for an error in the investigator's own code."""
_log = structlog.get_logger()


class RunAttempt:
    """One run on this node, until it ends or another node continues it."""

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
        self._recorder = LedgerRecorder(database, lease, assignment.recorded, assignment.first)
        self._client = SessionQueryClient(assignment.run, self._recorder, answer, clock, meter)
        self._limit = asyncio.timeout(None)
        self._is_investigating = False
        self._stopped_after: timedelta | None = None
        self.is_held = True
        """Whether to renew its lease: not after it is lost, nor while the run ends."""

    @property
    def progress(self) -> Mapping[str, Any]:
        """Progress of the run, as the API shows it."""
        return self._client.progress

    @property
    def spent(self) -> timedelta:
        """Duration of the run, summed over all nodes that ran it."""
        return self._client.spent

    def tick(self) -> None:
        """Count the elapsed time, and fail the run if it exceeds its timeout."""
        self._client.tick()
        can_be_late = self.is_held and self._is_investigating and not self._limit.expired()
        if can_be_late and self.spent >= self.assignment.timeout:
            self._stopped_after = self.spent
            self._limit.reschedule(asyncio.get_running_loop().time())

    def mark_lost(self) -> None:
        """Record that its lease is lost and its task is cancelled."""
        self.is_held = False
        self._stopped_after = self.spent

    def is_stuck(self, patience: timedelta) -> bool:
        """Return whether its investigator has ignored its cancellation for this long."""
        stopped = self._stopped_after
        return stopped is not None and self._is_investigating and self.spent - stopped >= patience

    def abandon(self) -> RunResult:
        """Stop recording and return a timeout result."""
        added = self._recorder.take()
        self._recorder.stop()
        return RunResult(failure=self._timeout_failure, added=added)

    @property
    def _timeout_failure(self) -> RunFailure:
        seconds = self.assignment.timeout.total_seconds()
        return RunFailure(FailureCause.TIMEOUT, f"not finished within {seconds:g} seconds")

    async def execute(self, investigator: Investigator) -> RunResult:
        """Run the investigator and return the result.

        Raises RunLeaseLost if the lease is lost, and the errors of an unavailable database.
        """
        report, error = None, None
        try:
            report = await self._investigate(investigator)
        except PLUGIN_FAILURES as raised:
            if was_cancelled():
                raise
            error = raised
        failure = self._failure(error)
        added = self._recorder.take()
        self._recorder.stop()
        client, report = self._client, report if failure is None else None
        return RunResult(report, failure, added, client.relations, client.named)

    async def _investigate(self, investigator: Investigator) -> Report:
        try:
            async with self._limit:
                self._is_investigating = True
                report = await investigator.investigate(self.assignment.inquiry, self._client)
        finally:
            self._is_investigating = False
        require_kind(report, Report, investigator.investigate)
        return await asyncio.to_thread(_check_report, report, self._citable)

    @property
    def _citable(self) -> AbstractSet[str]:
        previous = self.assignment.inquiry.previous
        return self._client.citable | (collect_citable(previous) if previous else set())

    def _failure(self, error: BaseException | None) -> RunFailure | None:
        """Return why there is no report, None if there is one. Raises transient errors."""
        if self._limit.expired():
            return self._timeout_failure
        recorder_error = self._recorder.error
        if recorder_error is not None and is_transient(recorder_error):
            raise recorder_error
        error = recorder_error or error
        if isinstance(error, InvestigationFailed):
            reason = str(error) or "the investigator gave no reason"
            return RunFailure(FailureCause.INVESTIGATION, reason)
        if error is not None:
            _log.error("investigator failed", session=self.lease.session_id, exc_info=error)
            return INTERNAL_FAILURE
        return None


def _check_report(report: Report, citable: AbstractSet[str]) -> Report:
    """Return the report as it is stored.

    Raises ValueError or TypeError if it cannot be encoded, and InvestigationFailed if it cites
    evidence that is not in the ledger.
    """
    report = normalize_report(report)
    if unknown := sorted(collect_citations(report) - citable):
        listed = ", ".join(unknown)
        raise InvestigationFailed(f"the report cites evidence that is not in the ledger: {listed}")
    return report


def is_transient(error: BaseException) -> bool:
    """Return whether an error is transient, so that the run can continue later."""
    return isinstance(error, RunLeaseLost | OSError) or find_fault(error) is not None
