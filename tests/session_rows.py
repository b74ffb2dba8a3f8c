"""Session rows, as an investigation stores them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, insert, update

from report_samples import brute_force
from tocsin.investigations import create_session
from tocsin.investigations.sessions.ledger import LedgerStep, append_steps
from tocsin.model import Persona, Phase, QueryOutcome, Report, SessionStatus
from tocsin.reports import to_json
from tocsin.store.tables import session_messages, sessions

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def add_session(
    connection: Connection, *, report: Report | None = None, now: datetime = NOW, **values: Any
) -> str:
    """Add a session that completed with a report and two steps; return its id."""
    report = report or brute_force()
    session_id = create_session(
        connection,
        query=values.pop("query", "what did 203.0.113.9 do?"),
        persona=Persona.ANALYST,
        provider=None,
        by="ana",
        now=now,
    )
    outcome = {
        "status": SessionStatus.COMPLETED.value,
        "progress": {"phase": "report", "steps": 2, "asked": 1},
        "completed_at": now,
        "title": report.title,
        "verdict": report.verdict.value,
        "confidence": report.confidence.value,
        "risk_score": report.risk_score,
        "finding_count": len(report.findings),
        "entity_count": len(report.entities),
        "report": to_json(report),
    }
    connection.execute(update(sessions).where(sessions.c.id == session_id).values(outcome | values))
    reply = {"session_id": session_id, "number": 2, "run": 1, "role": "investigator"}
    said = {"text": "It is malicious.", "created_by": "investigator", "created_at": now}
    connection.execute(insert(session_messages).values(reply | said))
    append_steps(connection, session_id, [_question(now), _conclusion(now)])
    return session_id


def _question(now: datetime) -> LedgerStep:
    return LedgerStep(
        number=1,
        run=1,
        phase=Phase.GATHER,
        kind="incidents-numbered",
        asked_of="incidents",
        question='{"numbers": [1]}',
        outcome=QueryOutcome.ANSWERED,
        answer="[]",
        started_at=now,
        elapsed_ms=3,
    )


def _conclusion(now: datetime) -> LedgerStep:
    return LedgerStep(
        number=2,
        run=1,
        phase=Phase.SCORE,
        kind="conclusion",
        conclusion="The risk score is 78.",
        evidence=("step:1",),
        started_at=now,
        elapsed_ms=4,
    )
