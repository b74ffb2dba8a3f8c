"""Recorded session, run by run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, select

from tocsin.errors import ConflictError, NotFoundError
from tocsin.investigations.sessions import ACTIVE_STATUSES, LedgerStep, load_steps
from tocsin.model import Inquiry, Persona, Report
from tocsin.store.tables import session_messages, sessions


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """One run: the user's messages up to it, and the steps it took."""

    number: int
    messages: tuple[str, ...]
    asked_at: datetime
    has_completed: bool
    steps: Sequence[LedgerStep]
    first: int
    """The number of its first step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A recorded session with all its runs."""

    session_id: str
    persona: Persona
    provider: str | None
    runs: Sequence[RecordedRun]
    report: Any
    """The stored JSON of the last report; None if no run has completed."""

    def inquiry(self, run: RecordedRun, previous: Report | None) -> Inquiry:
        """Return the inquiry of a run."""
        return Inquiry(
            session_id=self.session_id,
            messages=run.messages,
            persona=self.persona,
            provider=self.provider,
            asked_at=run.asked_at,
            previous=previous,
        )


def load_session_record(connection: Connection, session_id: str) -> SessionRecord:
    """Return the recording of a session.

    Raises NotFoundError if it does not exist, and ConflictError while it is active.
    """
    row = connection.execute(select(sessions).where(sessions.c.id == session_id)).mappings().first()
    if row is None:
        raise NotFoundError("There is no session with this ID.")
    if row["status"] in ACTIVE_STATUSES:
        raise ConflictError(f"This session is {row['status']}; wait until it has ended.")
    m = session_messages.c
    selected = select(session_messages).where(m.session_id == session_id).order_by(m.number)
    messages = connection.execute(selected).mappings().all()
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
    """Yield the runs: one for each user message; only a completed run has a reply."""
    asked = [message for message in messages if message["role"] == "user"]
    replied = {message["run"] for message in messages if message["role"] != "user"}
    for count, message in enumerate(asked, start=1):
        number = message["run"]
        yield RecordedRun(
            number=number,
            messages=tuple(earlier["text"] for earlier in asked[:count]),
            asked_at=message["created_at"],
            has_completed=number in replied,
            steps=[step for step in steps if step.run == number],
            first=max((step.number for step in steps if step.run < number), default=0) + 1,
        )
