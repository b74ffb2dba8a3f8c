"""Endpoints for the console sessions of all people."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from tocsin import credentials
from tocsin.clock import isoformat, isoformat_or_none
from tocsin.model import Json
from tocsin.web.context import AccessRole, AuditedChange, Endpoint, RequestContext, Response
from tocsin.web.pagination import PageCursor, page_response
from tocsin.web.record_problems import CONSOLE_SESSION_NOT_FOUND
from tocsin.web.schemas.console_sessions import (
    LIST,
    ConsoleSessionList,
    ConsoleSessionQuery,
    EndedSessions,
    PrincipalQuery,
)

_PREFIX = "cse_"


def list_console_sessions(connection: Connection, call: RequestContext) -> Response:
    """Return one page of the console sessions that have not ended, newest first."""
    query: ConsoleSessionQuery = call.query
    rows = credentials.list_sessions(
        connection,
        call.services.clock.now(),
        query.limit + 1,
        principal=query.principal,
        before=_PREFIX + query.cursor.before if query.cursor else None,
    )
    shown = rows[: query.limit]
    following = None
    if len(rows) > len(shown):
        following = PageCursor(LIST, shown[-1]["id"].removeprefix(_PREFIX))
    content: dict[str, Json] = {"console_sessions": [_represent(row) for row in shown]}
    return page_response(call, content, following)


def delete_console_session(connection: Connection, call: RequestContext) -> Response:
    """End a console session. The next request from its browser gets the sign-in page."""
    id_, now = call.path["console_session_id"], call.services.clock.now()
    principal = credentials.end_session_by_id(connection, id_, now)
    if principal is None:
        raise CONSOLE_SESSION_NOT_FOUND.error()
    return _respond(principal, 1)


def delete_console_sessions(connection: Connection, call: RequestContext) -> Response:
    """End all console sessions of a user.

    Admin tokens, API keys and the session at an OpenID Connect issuer stay valid, so the user can
    sign in again.
    """
    query: PrincipalQuery = call.query
    now = call.services.clock.now()
    ended = credentials.end_principal_sessions(connection, query.principal, now=now)
    return _respond(query.principal, ended)


def _respond(principal: str, ended: int) -> Response:
    details: dict[str, Json] = {"reason": "ended by an admin", "sessions": ended}
    change = AuditedChange(target=principal, details=details) if ended else None
    return Response({"ended": ended}, change=change)


def _represent(row: Any) -> dict[str, Json]:
    return {
        **{name: row[name] for name in ("id", "principal", "name", "role")},
        "begun_at": isoformat(row["begun_at"]),
        "used_at": isoformat_or_none(row["used_at"]),
        "expires_at": isoformat(row["expires_at"]),
        "address": row["address"],
        "browser": row["browser"],
    }


_SESSIONS = "/api/admin/console-sessions"

ENDPOINTS = (
    Endpoint(
        method="GET",
        path=_SESSIONS,
        access=AccessRole.ADMIN,
        summary="List console sessions, newest first",
        handler=list_console_sessions,
        query=ConsoleSessionQuery,
        response=ConsoleSessionList,
    ),
    Endpoint(
        method="DELETE",
        path=_SESSIONS,
        access=AccessRole.ADMIN,
        summary="End all console sessions of a user",
        handler=delete_console_sessions,
        query=PrincipalQuery,
        response=EndedSessions,
        action="console.session-end",
    ),
    Endpoint(
        method="DELETE",
        path=f"{_SESSIONS}/{{console_session_id}}",
        access=AccessRole.ADMIN,
        summary="End a console session",
        handler=delete_console_session,
        response=EndedSessions,
        action="console.session-end",
        problems=(CONSOLE_SESSION_NOT_FOUND,),
    ),
)
