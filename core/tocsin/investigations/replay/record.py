"""Recorded session, run by run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from tocsin.errors import CallerError
from tocsin.investigations.sessions.ledger import LedgerStep, load_steps
from tocsin.investigations.sessions.repository import ACTIVE_STATUSES
from tocsin.model import Inquiry, Persona, Report
from tocsin.store.tables import session_messages, sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """One run: what was asked for by the user's messages so far, and the steps it took."""

    number: int
    messages: tuple[str, ...]
    asked_at: datetime
    has_completed: bool
    steps: Sequence[LedgerStep]
    first: int
    """The number of its first step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """All of a session."""

    session_id: str
    persona: Persona
    provider: str | None
    runs: Sequence[RecordedRun]
    report: Any
    """The stored JSON of the last report; None where no run has completed."""

    def inquiry(self, run: RecordedRun, previous: Report | None) -> Inquiry:
        """Return what the investigator was asked in a run."""
        return Inquiry(
            session_id=self.session_id,
            messages=run.messages,
            persona=self.persona,
            provider=self.provider,
            asked_at=run.asked_at,
            previous=previous,
        )


def load_session_record(connection: Connection, session_id: str) -> SessionRecord:
    """Return what is recorded of a session.

    Raises CallerError: 404 where there is none of this id, 409 while it is under way.
    """
    row = connection.execute(select(sessions).where(sessions.c.id == session_id)).mappings().first()
    if row is None:
        raise CallerError(404, "There is no session of this id.")
    if row["status"] in ACTIVE_STATUSES:
        raise CallerError(409, f"This session is {row['status']}; wait until it has ended.")
    m = session_messages.c
    said = select(session_messages).where(m.session_id == session_id).order_by(m.number)
    messages = connection.execute(said).mappings().all()
    return SessionRecord(
        session_id=session_id,
        persona=Persona(row["persona"]),
        provider=row["provider"],
        runs=list(_list_runs(messages, load_steps(connection, session_id))),
        report=row["report"],
    )


def _list_runs(
    messages: Sequence[RowMapping], steps: Sequence[LedgerStep]
) -> Iterable[RecordedRun]:
    """Yield the runs: each was asked for by one message; only if it completed was it replied to."""
    asked = [message for message in messages if message["role"] == "user"]
    replied = {message["run"] for message in messages if message["role"] != "user"}
    for count, message in enumerate(asked, start=1):
        number = message["run"]
        yield RecordedRun(
            number=number,
            messages=tuple(it["text"] for it in asked[:count]),
            asked_at=message["created_at"],
            has_completed=number in replied,
            steps=[step for step in steps if step.run == number],
            first=max((step.number for step in steps if step.run < number), default=0) + 1,
        )
