"""How a run ends, and all that follows from it, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, update

from tocsin.investigations.recording import Added, store_added
from tocsin.investigations.relations import Told
from tocsin.investigations.report_codec import stored_report
from tocsin.investigations.running.assignment import Assignment
from tocsin.investigations.running.lease import Lease, Superseded, holds
from tocsin.investigations.sessions.records import ended, write_message
from tocsin.investigations.sessions.searching import index_session
from tocsin.model import Entity, Inquiry, Report, SessionStatus, Vocabulary
from tocsin.store.tables import sessions
from tocsin.store.text import clean

LONGEST_ERROR = 2_000
_LONGEST_REPLY = 20_000


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
class Failure:
    """Why there is no report."""

    cause: FailureCause
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A run that ends in this transaction, for whoever has something to do about that."""

    session_id: str
    schedule_id: str | None
    run: int
    inquiry: Inquiry
    status: SessionStatus
    """Completed or failed."""
    at: datetime
    failure: Failure | None = None
    """Why it failed, if it did."""
    report: Report | None = None
    """What it came to, if it completed."""
    told: Mapping[int, Sequence[Told]] = field(default_factory=dict)
    """What the answers of the run tell the graph, by step."""
    named: Mapping[str, AbstractSet[Entity]] = field(default_factory=dict)
    """The entities that events name, by the provider whose they are."""


Finisher = Callable[[Connection, Ended], Callable[[], None] | None]
"""Something that follows from the end of a run, in the transaction that ends it.

What it returns, if anything, is called once that is committed.
"""


@dataclass(frozen=True, slots=True)
class Ending:
    """What a run came to: a report, or why there is none."""

    report: Report | None = None
    failure: Failure | None = None
    added: Added = field(default_factory=Added)
    """What is still to be written to the ledger."""
    told: Mapping[int, Sequence[Told]] = field(default_factory=dict)
    named: Mapping[str, AbstractSet[Entity]] = field(default_factory=dict)

    @property
    def status(self) -> SessionStatus:
        """What the session is after it."""
        return SessionStatus.FAILED if self.report is None else SessionStatus.COMPLETED


def end_run(
    connection: Connection,
    lease: Lease,
    assignment: Assignment,
    ending: Ending,
    *,
    progress: Mapping[str, Any],
    finishers: Sequence[Finisher],
    now: datetime,
) -> list[Callable[[], None]]:
    """Store how a run ended, and all that follows; raises Superseded where the lease is lost.

    Returns what is to be called once that is committed.
    """
    store_added(connection, lease, ending.added)
    failure = ending.failure and Failure(
        ending.failure.cause, clean(ending.failure.reason, LONGEST_ERROR)
    )
    error = failure and failure.reason
    values = ended(ending.status, now) | {"error": error, "progress": dict(progress)}
    if ending.report is not None:
        values |= columns_of(ending.report)
    result = connection.execute(update(sessions).where(*holds(lease)).values(values))
    if result.rowcount != 1:
        raise Superseded(f"{lease.session_id}: it is not this node's any more")
    if ending.report is not None:
        write_message(
            connection,
            lease.session_id,
            run=assignment.run,
            role="investigator",
            text=_reply(ending.report),
            by="tocsin",
            now=now,
        )
    end = Ended(
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


def columns_of(report: Report) -> dict[str, Any]:
    """Return the columns of a session that its report fills."""
    return {
        "title": clean(report.title, LONGEST_ERROR),
        "verdict": report.verdict.value,
        "confidence": report.confidence.value,
        "risk_score": report.risk_score,
        "finding_count": len(report.findings),
        "entity_count": len(report.entities),
        "report": stored_report(report),
    }


def _reply(report: Report) -> str:
    """Return what the investigator says to the last message."""
    statements = report.reply or report.summary
    return clean(" ".join(it.text for it in statements) or report.title, _LONGEST_REPLY)
