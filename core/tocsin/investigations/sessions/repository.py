"""Storage of sessions and their messages, and their documents in the search index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from tocsin.errors import ConflictError, NotFoundError
from tocsin.fields import LONGEST_QUERY
from tocsin.identifiers import new_id
from tocsin.investigations.codec import decode_report
from tocsin.knowledge.search import SearchDocument, index_document, index_documents
from tocsin.model import Persona, Report, SessionStatus
from tocsin.reports import session_document_text
from tocsin.store import announce, clean_text
from tocsin.store.tables import session_messages, sessions

INVESTIGATIONS = "investigations"
"""The notification topic of queued and cancelled sessions."""
TIMEOUT: Final = timedelta(minutes=10)
MAX_FOLLOW_UPS: Final = 100
"""Maximum number of follow-ups: the search text and the ledger grow with each."""
NO_PROGRESS: Final = {"phase": None, "steps": 0, "asked": 0}
ACTIVE_STATUSES: Final = (SessionStatus.QUEUED, SessionStatus.RUNNING)
_LONGEST_TITLE = 200


def count_waiting(connection: Connection, at_most: int) -> int:
    """Return the number of active sessions that callers created, counted up to `at_most`.

    Sessions of schedules do not count: few run at once, and they must not shut out callers.
    """
    asked_for = sessions.c.status.in_(ACTIVE_STATUSES), sessions.c.schedule_id.is_(None)
    some = select(sessions.c.id).where(*asked_for).limit(at_most).subquery()
    count: int = connection.scalars(select(func.count()).select_from(some)).one()
    return count


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
    """A session to be created."""

    query: str
    persona: Persona
    provider: str | None
    by: str
    timeout: timedelta = TIMEOUT
    schedule_id: str | None = None


def create_session(connection: Connection, *, now: datetime, **members: Any) -> str:
    """Create a session and return its ID. Takes the fields of `NewSession`."""
    [session_id] = create_sessions(connection, [NewSession(**members)], now)
    return session_id


def create_sessions(
    connection: Connection, wanted: Sequence[NewSession], now: datetime
) -> list[str]:
    """Create sessions and return their IDs."""
    rows = [_session_row(session, now) for session in wanted]
    if rows:
        connection.execute(insert(sessions), rows)
        connection.execute(insert(session_messages), [_first_message(row) for row in rows])
        index_new_sessions(connection, rows)
        announce(connection, INVESTIGATIONS)
    return [row["id"] for row in rows]


def _session_row(wanted: NewSession, now: datetime) -> dict[str, Any]:
    return {
        "id": new_id("ses"),
        "query": clean_text(wanted.query, LONGEST_QUERY),
        "persona": wanted.persona.value,
        "provider": wanted.provider,
        "schedule_id": wanted.schedule_id,
        "run": 1,
        "timeout_ms": wanted.timeout // timedelta(milliseconds=1),
        "created_by": wanted.by,
        "created_at": now,
        **_queue_columns(now),
    }


def _first_message(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "session_id": row["id"],
        "number": 1,
        "run": 1,
        "role": "user",
        "text": row["query"],
        "created_by": row["created_by"],
        "created_at": row["created_at"],
    }


class SessionBusyError(ConflictError):
    """An active session does not accept messages."""

    def __init__(self, status: SessionStatus) -> None:
        super().__init__(
            f"This session is {status}; wait until it has completed, or cancel it, before you send "
            "another message."
        )


def add_message(connection: Connection, session_id: str, text: str, by: str, now: datetime) -> None:
    """Continue a session with another message; its last report stays readable meanwhile.

    Raises NotFoundError, SessionBusyError while it is active, and ConflictError at its maximum.
    """
    row = _lock_session(connection, session_id)
    if row["status"] in ACTIVE_STATUSES:
        raise SessionBusyError(SessionStatus(row["status"]))
    if row["run"] > MAX_FOLLOW_UPS:
        reason = f"has reached the maximum of {MAX_FOLLOW_UPS} follow-ups; start another session"
        raise ConflictError(f"This session {reason}.")
    next_run = update(sessions).where(sessions.c.id == session_id)
    values = _queue_columns(now) | {"run": sessions.c.run + 1}
    run = connection.scalars(next_run.values(values).returning(sessions.c.run)).one()
    asked = clean_text(text, LONGEST_QUERY)
    add_message_row(connection, session_id, run=run, role="user", text=asked, by=by, now=now)
    index_session(connection, session_id)
    announce(connection, INVESTIGATIONS)


def _queue_columns(now: datetime) -> dict[str, Any]:
    nothing = ("error", "started_at", "completed_at", "node", "lease", "leased_until")
    return {
        "status": SessionStatus.QUEUED.value,
        "progress": NO_PROGRESS,
        "attempts": 0,
        "asked_at": now,
        "updated_at": now,
        **dict.fromkeys(nothing),
    }


def cancel_session(connection: Connection, session_id: str, now: datetime) -> None:
    """Cancel an active session on any node; a finished session does not change.

    Raises NotFoundError if it does not exist.
    """
    if _lock_session(connection, session_id)["status"] not in ACTIVE_STATUSES:
        return
    connection.execute(
        update(sessions)
        .where(sessions.c.id == session_id)
        .values(end_columns(SessionStatus.CANCELLED, now))
    )
    index_session(connection, session_id)
    announce(connection, INVESTIGATIONS)


def cancel_waiting(connection: Connection, session_id: str, reason: str, now: datetime) -> bool:
    """Cancel a session that no node has claimed yet, and return whether it was cancelled."""
    c = sessions.c
    waits = c.id == session_id, c.status == SessionStatus.QUEUED, c.run == 1, c.started_at.is_(None)
    values = end_columns(SessionStatus.CANCELLED, now) | {"error": reason}
    if connection.execute(update(sessions).where(*waits).values(values)).rowcount != 1:
        return False
    index_session(connection, session_id)
    return True


def end_columns(status: SessionStatus, now: datetime) -> dict[str, Any]:
    """Return the columns of a session that has ended, which no node holds."""
    free = dict.fromkeys(("node", "lease", "leased_until"))
    return {"status": status.value, "completed_at": now, "updated_at": now, **free}


def _lock_session(connection: Connection, session_id: str) -> RowMapping:
    """Return a session, locked until the transaction ends."""
    row_of = select(sessions.c.status, sessions.c.run).where(sessions.c.id == session_id)
    row = connection.execute(row_of.with_for_update()).mappings().one_or_none()
    if row is None:
        raise NotFoundError("There is no session with this ID.")
    return row


def add_message_row(
    connection: Connection,
    session_id: str,
    *,
    run: int,
    role: str,
    text: str,
    by: str,
    now: datetime,
) -> None:
    """Store a message; the caller holds the session's row, so that numbers have no gaps."""
    m = session_messages.c
    numbers = select(m.number).where(m.session_id == session_id)
    last = connection.scalars(numbers.order_by(m.number.desc()).limit(1)).one_or_none()
    row = {
        "session_id": session_id,
        "number": (last or 0) + 1,
        "run": run,
        "role": role,
        "text": text,
        "created_by": by,
        "created_at": now,
    }
    connection.execute(insert(session_messages).values(row))


def load_report(connection: Connection, session_id: str) -> Report | None:
    """Return the report of the last completed run, None if there is none that can be read."""
    query = select(sessions.c.report).where(sessions.c.id == session_id)
    stored = connection.scalars(query).one_or_none()
    return decode_report(stored, session_id)


def index_session(connection: Connection, session_id: str) -> None:
    """Index the current state of a session; its last report stays while it runs again."""
    row = connection.execute(select(sessions).where(sessions.c.id == session_id)).mappings().one()
    m = session_messages.c
    messages = select(m.text).where(m.session_id == session_id).order_by(m.number)
    report = decode_report(row["report"], session_id)
    texts = [*connection.scalars(messages), *([session_document_text(report)] if report else [])]
    index_document(connection, _search_document(row, texts, report))


def index_all_sessions(connection: Connection) -> None:
    """Index every session, into an index that is empty."""
    for session_id in connection.scalars(select(sessions.c.id)).all():
        index_session(connection, session_id)


def index_new_sessions(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Index new sessions by their queries."""
    index_documents(connection, [_search_document(row, [row["query"]]) for row in rows])


def _search_document(
    row: Mapping[Any, Any], texts: Sequence[str], report: Report | None = None
) -> SearchDocument:
    return SearchDocument(
        kind="session",
        record=row["id"],
        title=row.get("title") or row["query"][:_LONGEST_TITLE],
        text="\n".join(texts),
        at=row["created_at"],
        facets={name: row.get(name) for name in ("status", "provider", "persona", "verdict")},
        entities=[assessment.entity for assessment in report.entities] if report else (),
        techniques=report.techniques if report else (),
    )
