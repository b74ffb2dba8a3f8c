"""Sessions: having something investigated, following it, and going on from what it came to."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field, StringConstraints
from sqlalchemy import Connection

from tocsin import investigations
from tocsin.errors import CallerError
from tocsin.fields import QueryText, any_case
from tocsin.investigations import WriteBackState
from tocsin.model import Confidence, Persona, Phase, SessionStatus, Verdict
from tocsin.validation import suggest_nearest
from tocsin.web.context import AuditedChange, RequestContext, Response
from tocsin.web.parsing import BodyModel, ResponseModel, invalid_request
from tocsin.web.routes.fields import not_found

MAX_QUEUED_SESSIONS = 1_000
"""So many sessions may wait to be investigated; then no more are taken."""
_TRY_AGAIN = "60"


class NewInvestigation(BodyModel):
    """What to investigate."""

    query: QueryText = Field(
        description="What to find out, in words: incident numbers, entities, time ranges, terms."
    )
    persona: Annotated[Persona, any_case(Persona)] = Field(
        default=Persona.ANALYST,
        description="For whom it is: how deep it looks, and what the report shows.",
    )
    provider: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = Field(
        default=None, description="The only provider to look at; all by default."
    )


class NewMessage(BodyModel):
    """A follow-up."""

    message: QueryText = Field(description="What else to find out.")


class StartedSession(ResponseModel):
    """A session that was taken up."""

    session_id: str
    status: SessionStatus
    url: str = Field(description="Its page in Tocsin's console.")


class SessionProgress(ResponseModel):
    """How far a session under way has come."""

    phase: Phase | None = Field(description="What it is doing; null before it has begun.")
    steps: int = Field(description="How many steps its ledger has.")
    asked: int = Field(description="How many of them asked someone.")


class SessionMessage(ResponseModel):
    """Something that was said in a session."""

    role: str = Field(json_schema_extra={"enum": ["user", "investigator"]})
    text: str
    run: int = Field(description="In which run: 1 for the query, one more for each follow-up.")
    created_by: str
    created_at: datetime


class SessionSummary(ResponseModel):
    """A session, as lists have it."""

    id: str
    status: SessionStatus
    query: str
    persona: Persona
    provider: str | None
    schedule_id: str | None = Field(description="The schedule that it is a run of, if it is one.")
    run: int = Field(description="How often it was asked: 1 for the query alone.")
    progress: SessionProgress
    error: str | None = Field(description="Why it has failed.")
    title: str | None
    verdict: Verdict | None
    confidence: Confidence | None
    risk_score: float | None = Field(description="From 0 to 100.")
    entity_count: int | None
    finding_count: int | None
    created_by: str
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None
    url: str = Field(description="Its page in Tocsin's console.")


class WriteBackOutcome(ResponseModel):
    """What became of a comment to an incident's SIEM."""

    run: int
    state: WriteBackState
    attempts: int = Field(description="How often it could not be written.")
    reason: str | None = Field(description="Why not, the last time.")
    finished_at: datetime | None


class SessionWriteBack(WriteBackOutcome):
    """A comment that a session leaves at an incident's SIEM."""

    incident_number: int
    provider: str


class Session(SessionSummary):
    """A session, with what was said in it."""

    messages: list[SessionMessage]
    report: str | None = Field(
        description="The report of the last run that completed, as Markdown; null until one has."
    )
    write_backs: list[SessionWriteBack] = Field(
        description="What it leaves as comments at the SIEMs of the incidents that it was about."
    )


def start_investigation(connection: Connection, call: RequestContext) -> Response:
    """Have something investigated, and answer the session; poll it until it is completed."""
    body: NewInvestigation = call.body
    _require_room(connection, call)
    require_provider(call, body.provider)
    session_id = investigations.create_session(
        connection,
        query=body.query,
        persona=body.persona,
        provider=body.provider,
        by=call.principal.name,
        now=call.services.clock.now(),
    )
    details = {"persona": body.persona, "provider": body.provider}
    return _respond_started(connection, call, session_id, details)


def send_session_message(connection: Connection, call: RequestContext) -> Response:
    """Have a session go on with a follow-up, and answer it; its report can be read meanwhile."""
    body: NewMessage = call.body
    _require_room(connection, call)
    session_id, now = call.path["session_id"], call.services.clock.now()
    investigations.add_message(connection, session_id, body.message, call.principal.name, now)
    return _respond_started(connection, call, session_id, {})


def _respond_started(
    connection: Connection, call: RequestContext, session_id: str, details: dict[str, Any]
) -> Response:
    url = call.services.public_url
    session = investigations.find_session(connection, session_id, public_url=url)
    assert session is not None  # noqa: S101 - it was made or changed a moment ago
    content = {"session_id": session_id, "status": session["status"], "url": session["url"]}
    change = AuditedChange(
        target=f"session:{session_id}", details=details | {"run": session["run"]}
    )
    return Response(content, change=change)


def cancel_session(connection: Connection, call: RequestContext) -> Response:
    """End a session that is under way, and answer it; one that has ended stays as it is."""
    session_id, now = call.path["session_id"], call.services.clock.now()
    url = call.services.public_url
    before = investigations.find_session(connection, session_id, public_url=url)
    investigations.cancel_session(connection, session_id, now)
    session = investigations.render_session(_load(connection, call))
    change = AuditedChange(target=f"session:{session_id}", details={"run": session["run"]})
    has_changed = before is not None and session["status"] != before["status"]
    return Response(session, change=change if has_changed else None)


async def get_session(call: RequestContext) -> Response:
    """Answer a session, with its report once it is completed."""
    loaded = await call.services.database.read(_load, call)
    return Response(await asyncio.to_thread(investigations.render_session, loaded))


def _load(connection: Connection, call: RequestContext) -> investigations.LoadedSession:
    session_id, url = call.path["session_id"], call.services.public_url
    found = investigations.load_session(connection, session_id, public_url=url)
    if found is None:
        raise not_found("session")
    return found


def _require_room(connection: Connection, call: RequestContext) -> None:
    """Raise CallerError (503) where nobody investigates, or too much waits already."""
    require_investigator(call)
    if investigations.count_waiting(connection, MAX_QUEUED_SESSIONS) == MAX_QUEUED_SESSIONS:
        words = f"{MAX_QUEUED_SESSIONS:,} sessions wait to be investigated; try again later."
        raise CallerError(503, words, headers={"Retry-After": _TRY_AGAIN})


def require_investigator(call: RequestContext) -> None:
    """Return where there is somebody who investigates; CallerError (503) elsewhere."""
    if reason := call.services.no_investigator:
        raise CallerError(503, f"This service investigates nothing: {reason}.")


def require_provider(call: RequestContext, name: str | None) -> None:
    """Return where there is a provider of this name, or none is named; CallerError (422)."""
    known = sorted(facts.name for facts in call.services.providers)
    if name is not None and name not in known:
        detail = f"there is no provider {name!r}; name one of: {', '.join(known) or 'none yet'}"
        raise invalid_request(
            "body", [{"path": "provider", "detail": detail + suggest_nearest(name, known)}]
        )
