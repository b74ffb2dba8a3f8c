"""Read queries on sessions for the API, with a sentence for each step of a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, RowMapping, select

from tocsin.clock import isoformat, isoformat_or_none
from tocsin.investigations.codec import decode_report
from tocsin.investigations.sessions.ledger import LedgerStep, load_questions
from tocsin.investigations.write_backs import WriteBack, list_write_backs
from tocsin.model import Persona, QueryOutcome, SessionStatus
from tocsin.reports import to_markdown
from tocsin.store import count_matching
from tocsin.store.tables import session_messages, sessions

_PLAIN = (
    "id",
    "status",
    "query",
    "persona",
    "provider",
    "schedule_id",
    "run",
    "progress",
    "error",
    "title",
    "verdict",
    "confidence",
    "risk_score",
    "entity_count",
    "finding_count",
    "created_by",
)
_MOMENTS = ("created_at", "updated_at", "completed_at")
_shown = select(*(sessions.c[name] for name in (*_PLAIN, *_MOMENTS)))
_newest_first = _shown.order_by(sessions.c.id.desc())
_MAX_NAMED = 3
"""Maximum number of subjects named in a sentence."""
_QUESTION_PHRASES = {  # followed by the subject
    "who-is-there": "Listed the available sources",
    "incidents-numbered": "Looked up incidents by number:",
    "incidents-about": "Searched for incidents that involve",
    "incidents-within": "Searched for incidents in the time range",
    "entities-like": "Searched for entities that match",
    "sightings-of": "Looked up sightings of",
    "neighbours-of": "Searched the graph for neighbors of",
    "events-of": "Searched {source} for events that involve",
    "enrichments-of": "Asked {source} about",
    "matching": "Searched stored incidents and sessions for",
}


@dataclass(frozen=True, slots=True)
class LoadedSession:
    """A session with its messages and comments; its report is not rendered yet."""

    shown: Mapping[str, Any]
    report: Any
    """As it is stored; None until a run has completed."""
    meanings: Mapping[str, str]
    """Sentences about the steps that its report cites."""


@dataclass(frozen=True, slots=True)
class SessionPage:
    """One page of a list, the newest session first; without messages and reports."""

    sessions: list[dict[str, Any]]
    total: int
    exact: bool
    """False if there are more than `total`."""
    next: str | None
    """The value of `before` for the next page; None on the last page."""


def session_url(public_url: str, session_id: str) -> str:
    """Return the address of a session in the console."""
    return f"{public_url}/investigations/{session_id}"


def load_session(
    connection: Connection, session_id: str, *, public_url: str
) -> LoadedSession | None:
    """Return a session with its messages and its last report, None if it does not exist.

    The result is for `render_session`, which is slow and needs no connection.
    """
    whole = _shown.add_columns(sessions.c.report).where(sessions.c.id == session_id)
    row = connection.execute(whole).mappings().one_or_none()
    if row is None:
        return None
    messages = [_represent_message(message) for message in _load_messages(connection, session_id)]
    written = [_represent_write_back(back) for back in list_write_backs(connection, session_id)]
    return LoadedSession(
        represent_session(row, public_url) | {"messages": messages, "write_backs": written},
        row["report"],
        describe_steps(connection, session_id) if row["report"] is not None else {},
    )


def render_session(loaded: LoadedSession) -> dict[str, Any]:
    """Return a session as the API shows it; its report is Markdown, None until a run completes."""
    report = decode_report(loaded.report, loaded.shown["id"])
    written = None if report is None else to_markdown(report, loaded.meanings)
    return {**loaded.shown, "report": written}


def find_session(
    connection: Connection, session_id: str, *, public_url: str
) -> dict[str, Any] | None:
    """Return a session as lists show it, None if it does not exist."""
    row = connection.execute(_shown.where(sessions.c.id == session_id)).mappings().one_or_none()
    return None if row is None else represent_session(row, public_url)


def list_sessions(
    connection: Connection,
    *,
    public_url: str,
    limit: int,
    before: str | None = None,
    status: SessionStatus | None = None,
    persona: Persona | None = None,
    provider: str | None = None,
    schedule_id: str | None = None,
) -> SessionPage:
    """Return the sessions that match, the newest first; `before` continues an earlier page."""
    wanted = {"status": status, "persona": persona, "provider": provider}
    matching = list(_matching(**wanted, schedule_id=schedule_id))
    page = _newest_first.where(*matching).limit(limit + 1)
    if before is not None:
        page = page.where(sessions.c.id < before)
    found = connection.execute(page).mappings().all()
    total = count_matching(connection, sessions, matching)
    return SessionPage(
        sessions=[represent_session(row, public_url) for row in found[:limit]],
        total=total.count,
        exact=total.exact,
        next=found[limit - 1]["id"] if len(found) > limit else None,
    )


def _matching(**wanted: str | None) -> Iterable[ColumnElement[bool]]:
    return (sessions.c[name] == value for name, value in wanted.items() if value is not None)


def represent_session(row: RowMapping | Mapping[str, Any], public_url: str) -> dict[str, Any]:
    """Return a session as lists show it."""
    return {
        **{name: row[name] for name in _PLAIN},
        **{name: isoformat_or_none(row[name]) for name in _MOMENTS},
        "url": session_url(public_url, row["id"]),
    }


def _represent_write_back(written: WriteBack) -> dict[str, Any]:
    return {
        "incident_number": written.incident_number,
        "provider": written.provider,
        "run": written.run,
        "state": written.state,
        "attempts": written.attempts,
        "reason": written.reason,
        "finished_at": isoformat_or_none(written.finished_at),
    }


def _load_messages(connection: Connection, session_id: str) -> Iterable[RowMapping]:
    m = session_messages.c
    query = select(session_messages).where(m.session_id == session_id).order_by(m.number)
    return connection.execute(query).mappings()


def _represent_message(row: RowMapping) -> dict[str, Any]:
    names = ("role", "text", "run", "created_by")
    shown = {name: row[name] for name in names}
    return {**shown, "created_at": isoformat(row["created_at"])}


def describe_steps(connection: Connection, session_id: str) -> dict[str, str]:
    """Return a sentence for each step of a session, by its reference, such as `step:12`."""
    steps = load_questions(connection, session_id)
    return {step.reference: _describe_step(step) for step in steps}


def _describe_step(step: LedgerStep) -> str:
    if step.conclusion is not None:
        return f"Concluded: {step.conclusion}"
    source = (step.asked_of or "").replace(":", " ", 1)
    phrase = _QUESTION_PHRASES.get(step.kind, f"Asked {{source}}: {step.kind.replace('-', ' ')}")
    text = f"{phrase.replace('{source}', source)}{_describe_subject(step.question)}"
    if step.outcome is QueryOutcome.ANSWERED:
        return text + (f" (partial: {step.reason})" if step.reason else "")
    return f"{text}: {step.outcome} ({step.reason})"


def _describe_subject(question: str | None) -> str:
    """Return the subject of a question in a few words."""
    asked: Mapping[str, Any] = orjson.loads(question or "{}")
    entities = [asked["entity"]] if "entity" in asked else asked.get("entities", [])
    named = [entity["value"] for entity in entities] or list(map(str, asked.get("numbers", [])))
    if pattern := asked.get("pattern"):
        named = [pattern]
    if text := asked.get("text"):
        named = [repr(text)]
    more = f" and {len(named) - _MAX_NAMED} more" if len(named) > _MAX_NAMED else ""
    return f" {', '.join(named[:_MAX_NAMED])}{more}" if named else ""
