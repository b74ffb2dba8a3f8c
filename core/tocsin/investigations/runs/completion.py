"""Completion of a run and its effects, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, update

from tocsin.investigations.codec import encode_report
from tocsin.investigations.evidence import RelationReport
from tocsin.investigations.runs.assignment import RunAssignment
from tocsin.investigations.runs.lease import RunLease, RunLeaseLost
from tocsin.investigations.runs.recorder import LedgerChanges, store_changes
from tocsin.investigations.sessions import add_message_row, end_columns, index_session
from tocsin.model import Entity, Inquiry, Report, SessionStatus, Vocabulary
from tocsin.store import clean_text
from tocsin.store.tables import sessions

MAX_ERROR = 2_000
_MAX_REPLY = 20_000


class FailureCause(Vocabulary):
    """Cause of a failed run."""

    INVESTIGATION = "investigation"
    """It cannot be done; for example, an incident that it names does not exist."""
    TIMEOUT = "timeout"
    """It exceeded its timeout."""
    LOST = "lost"
    """Every node that claimed it was lost."""
    INTERNAL = "internal"
    """An internal error; the log has the details."""


@dataclass(frozen=True, slots=True)
class RunFailure:
    """The reason why a run has no report."""

    cause: FailureCause
    reason: str


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run: a report, or the reason why there is none."""

    report: Report | None = None
    failure: RunFailure | None = None
    added: LedgerChanges = field(default_factory=LedgerChanges)
    """Changes that are still to be written to the ledger."""
    relations: Mapping[int, Sequence[RelationReport]] = field(default_factory=dict)
    """Relations that the answers of the run report, by step."""
    named: Mapping[str, AbstractSet[Entity]] = field(default_factory=dict)
    """The entities that events name, by provider."""

    @property
    def status(self) -> SessionStatus:
        """Status of the session afterwards."""
        return SessionStatus.FAILED if self.report is None else SessionStatus.COMPLETED


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A run that ends in this transaction, as its finishers see it."""

    session_id: str
    schedule_id: str | None
    run: int
    inquiry: Inquiry
    at: datetime
    result: RunResult


Finisher = Callable[[Connection, FinishedRun], Callable[[], None] | None]
"""An effect of a run's end, in the same transaction.

The function that it returns, if any, is called after the commit.
"""


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
    """Store the end of a run with its effects. Raises RunLeaseLost if the lease is lost.

    Returns the functions to call after the commit.
    """
    store_changes(connection, lease, ending.added)
    failure = ending.failure and RunFailure(
        ending.failure.cause, clean_text(ending.failure.reason, MAX_ERROR)
    )
    error = failure and failure.reason
    values = end_columns(ending.status, now) | {"error": error, "progress": dict(progress)}
    if ending.report is not None:
        values |= report_columns(ending.report)
    result = connection.execute(update(sessions).where(*lease.conditions).values(values))
    if result.rowcount != 1:
        raise RunLeaseLost(f"{lease.session_id}: claimed by another node, or cancelled")
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
        at=now,
        result=replace(ending, failure=failure),
    )
    effects = [finish(connection, end) for finish in finishers]
    index_session(connection, lease.session_id)
    return [effect for effect in effects if effect is not None]


def report_columns(report: Report) -> dict[str, Any]:
    """Return the columns of a session that are taken from its report."""
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
    """Return the investigator's reply to the last message."""
    statements = report.reply or report.summary
    return clean_text(
        " ".join(statement.text for statement in statements) or report.title, _MAX_REPLY
    )
