"""Completion of a run and its effects, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, update

from tocsin.investigations.codec import encode_report
from tocsin.investigations.evidence import RelationReport
from tocsin.investigations.recorder import LedgerChanges, store_changes
from tocsin.investigations.runs.assignment import RunAssignment
from tocsin.investigations.runs.lease import RunLease, RunLeaseLost, lease_conditions
from tocsin.investigations.sessions.repository import add_message_row, end_columns, index_session
from tocsin.model import Entity, Inquiry, Report, SessionStatus, Vocabulary
from tocsin.store.tables import sessions
from tocsin.store.text import clean_text

MAX_ERROR = 2_000
_MAX_REPLY = 20_000


class FailureCause(Vocabulary):
    """Why a run has failed, for those who count it."""

    INVESTIGATION = "investigation"
    """It could not be done, such as where an incident that it names does not exist."""
    TIMEOUT = "timeout"
    """It took longer than it may."""
    LOST = "lost"
    """Every node that took it up was lost."""
    INTERNAL = "internal"
    """Something is broken, of which the log tells more."""


@dataclass(frozen=True, slots=True)
class RunFailure:
    """Why there is no report."""

    cause: FailureCause
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A run that ends in this transaction, for whoever has something to do about that."""

    session_id: str
    schedule_id: str | None
    run: int
    inquiry: Inquiry
    status: SessionStatus
    """Completed or failed."""
    at: datetime
    failure: RunFailure | None = None
    """Why it failed, if it did."""
    report: Report | None = None
    """What it came to, if it completed."""
    told: Mapping[int, Sequence[RelationReport]] = field(default_factory=dict)
    """What the answers of the run tell the graph, by step."""
    named: Mapping[str, AbstractSet[Entity]] = field(default_factory=dict)
    """The entities that events name, by the provider whose they are."""


Finisher = Callable[[Connection, FinishedRun], Callable[[], None] | None]
"""Something that follows from the end of a run, in the transaction that ends it.

What it returns, if anything, is called once that is committed.
"""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run came to: a report, or why there is none."""

    report: Report | None = None
    failure: RunFailure | None = None
    added: LedgerChanges = field(default_factory=LedgerChanges)
    """What is still to be written to the ledger."""
    told: Mapping[int, Sequence[RelationReport]] = field(default_factory=dict)
    named: Mapping[str, AbstractSet[Entity]] = field(default_factory=dict)

    @property
    def status(self) -> SessionStatus:
        """What the session is after it."""
        return SessionStatus.FAILED if self.report is None else SessionStatus.COMPLETED


def finish_run(
    connection: Connection,
    lease: RunLease,
    assignment: RunAssignment,
    ending: RunResult,
    *,
    progress: Mapping[str, Any],
    finishers: Sequence[Finisher],
    now: datetime,
) -> list[Callable[[], None]]:
    """Store how a run ended, and all that follows; raises Superseded where the lease is lost.

    Returns what is to be called once that is committed.
    """
    store_changes(connection, lease, ending.added)
    failure = ending.failure and RunFailure(
        ending.failure.cause, clean_text(ending.failure.reason, MAX_ERROR)
    )
    error = failure and failure.reason
    values = end_columns(ending.status, now) | {"error": error, "progress": dict(progress)}
    if ending.report is not None:
        values |= report_columns(ending.report)
    result = connection.execute(update(sessions).where(*lease_conditions(lease)).values(values))
    if result.rowcount != 1:
        raise RunLeaseLost(f"{lease.session_id}: it is not this node's any more")
    if ending.report is not None:
        add_message_row(
            connection,
            lease.session_id,
            run=assignment.run,
            role="investigator",
            text=_reply_text(ending.report),
            by="tocsin",
            now=now,
        )
    end = FinishedRun(
        session_id=lease.session_id,
        schedule_id=assignment.schedule_id,
        run=assignment.run,
        inquiry=assignment.inquiry,
        status=ending.status,
        at=now,
        failure=failure,
        report=ending.report,
        told=ending.told,
        named=ending.named,
    )
    after = [finish(connection, end) for finish in finishers]
    index_session(connection, lease.session_id)
    return [it for it in after if it is not None]


def report_columns(report: Report) -> dict[str, Any]:
    """Return the columns of a session that its report fills."""
    return {
        "title": clean_text(report.title, MAX_ERROR),
        "verdict": report.verdict.value,
        "confidence": report.confidence.value,
        "risk_score": report.risk_score,
        "finding_count": len(report.findings),
        "entity_count": len(report.entities),
        "report": encode_report(report),
    }


def _reply_text(report: Report) -> str:
    """Return what the investigator says to the last message."""
    statements = report.reply or report.summary
    return clean_text(
        " ".join(statement.text for statement in statements) or report.title, _MAX_REPLY
    )
