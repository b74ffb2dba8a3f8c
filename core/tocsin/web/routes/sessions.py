"""Endpoints that start, continue, cancel and show sessions."""

from __future__ import annotations

import asyncio
from typing import Any

from sqlalchemy import Connection

from tocsin import investigations
from tocsin.credentials import ConsoleRole, Scope
from tocsin.validation import suggest_provider
from tocsin.web.context import AuditedChange, Endpoint, RequestContext, Response
from tocsin.web.parsing import invalid_member
from tocsin.web.record_problems import (
    NO_INVESTIGATOR,
    SESSION_BUSY,
    SESSION_NOT_FOUND,
    TOO_MANY_SESSIONS,
)
from tocsin.web.schemas.sessions import NewInvestigation, NewMessage, Session, StartedSession

MAX_QUEUED_SESSIONS = 1_000
"""Maximum number of queued sessions."""

_TRY_AGAIN = "60"


def start_investigation(connection: Connection, call: RequestContext) -> Response:
    """Start an investigation and return its session. Poll the session until it is finished."""
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
    """Continue a session with a follow-up and return the session. Its report stays available."""
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
    """Cancel an active session and return it. A finished session does not change."""
    session_id, now = call.path["session_id"], call.services.clock.now()
    url = call.services.public_url
    before = investigations.find_session(connection, session_id, public_url=url)
    investigations.cancel_session(connection, session_id, now)
    session = investigations.render_session(_load(connection, call))
    change = AuditedChange(target=f"session:{session_id}", details={"run": session["run"]})
    has_changed = before is not None and session["status"] != before["status"]
    return Response(session, change=change if has_changed else None)


async def get_session(call: RequestContext) -> Response:
    """Return a session, with its report after completion."""
    loaded = await call.services.database.read(_load, call)
    return Response(await asyncio.to_thread(investigations.render_session, loaded))


def _load(connection: Connection, call: RequestContext) -> investigations.LoadedSession:
    session_id, url = call.path["session_id"], call.services.public_url
    found = investigations.load_session(connection, session_id, public_url=url)
    if found is None:
        raise SESSION_NOT_FOUND.error()
    return found


def _require_room(connection: Connection, call: RequestContext) -> None:
    """Raise ProblemError (503) if no investigator is configured or too many sessions are queued."""
    require_investigator(call)
    if investigations.count_waiting(connection, MAX_QUEUED_SESSIONS) == MAX_QUEUED_SESSIONS:
        raise TOO_MANY_SESSIONS.error({"Retry-After": _TRY_AGAIN}, count=MAX_QUEUED_SESSIONS)


def require_investigator(call: RequestContext) -> None:
    """Raise ProblemError (503) if no investigator is configured."""
    if reason := call.services.no_investigator:
        raise NO_INVESTIGATOR.error(reason=reason)


def require_provider(call: RequestContext, name: str | None) -> None:
    """Raise ProblemError (422) if the provider is unknown."""
    known = sorted(facts.name for facts in call.services.providers)
    if name is not None and name not in known:
        detail = f"there is no provider {name!r}; {suggest_provider(name, known)}"
        raise invalid_member("provider", detail)


_INVESTIGATIONS = "/api/v1/investigations"
_SESSION = "/api/v1/sessions/{session_id}"

ENDPOINTS = (
    Endpoint(
        method="POST",
        path=f"{_INVESTIGATIONS}/start",
        access=Scope.INVESTIGATIONS_WRITE,
        summary="Start an investigation",
        handler=start_investigation,
        role=ConsoleRole.ANALYST,
        body=NewInvestigation,
        response=StartedSession,
        action="investigation.start",
        idempotent=True,
        status=202,
        problems=(TOO_MANY_SESSIONS, NO_INVESTIGATOR),
    ),
    Endpoint(
        method="GET",
        path=_SESSION,
        access=Scope.INVESTIGATIONS_READ,
        summary="Get a session, with its report after completion",
        handler=get_session,
        response=Session,
        problems=(SESSION_NOT_FOUND,),
    ),
    Endpoint(
        method="POST",
        path=f"{_SESSION}/message",
        access=Scope.INVESTIGATIONS_WRITE,
        summary="Send a follow-up message to a session",
        handler=send_session_message,
        role=ConsoleRole.ANALYST,
        body=NewMessage,
        response=StartedSession,
        action="session.message",
        idempotent=True,
        status=202,
        problems=(SESSION_NOT_FOUND, SESSION_BUSY, TOO_MANY_SESSIONS, NO_INVESTIGATOR),
    ),
    Endpoint(
        method="POST",
        path=f"{_SESSION}/cancel",
        access=Scope.INVESTIGATIONS_WRITE,
        summary="Cancel an active session",
        handler=cancel_session,
        role=ConsoleRole.ANALYST,
        response=Session,
        action="session.cancel",
        problems=(SESSION_NOT_FOUND,),
    ),
)
