"""A person's own console sessions: the list, and forms that end one or all others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web
from sqlalchemy import Connection

from tocsin.credentials import (
    ConsoleRole,
    end_own_session,
    end_principal_sessions,
    list_own_sessions,
)
from tocsin.web.console.forms import Form, read_fields
from tocsin.web.console.page_request import PageRequest
from tocsin.web.console.pages import ConsolePage
from tocsin.web.console.sessions import ConsoleSessions, SignedInUser
from tocsin.web.context import ApiServices
from tocsin.web.dispatch import build_audit_entry, record_action

OWN_SESSIONS = "/my-sessions"
_BROWSERS = {
    "Edg/": "Edge",
    "OPR/": "Opera",
    "Firefox/": "Firefox",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}
"""Names of browsers by their token in the header `User-Agent`, the most specific first."""
_SYSTEMS = {
    "Windows": "Windows",
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}
_LONGEST = 80


def name_browser(header: str | None) -> str:
    """Return a name such as "Firefox on Linux", else the beginning of the header."""
    text = header or ""
    browser = next((name for part, name in _BROWSERS.items() if part in text), None)
    system = next((name for part, name in _SYSTEMS.items() if part in text), None)
    if browser is None:
        return text[:_LONGEST] or "unknown"
    return browser if system is None else f"{browser} on {system}"


async def show_own_sessions(request: PageRequest) -> Mapping[str, Any]:
    """Return the sessions of the user, newest first."""
    user, now = request.user, request.services.clock.now()
    principal = user.session.principal
    sessions = await request.services.database.read(list_own_sessions, principal, user.secret, now)
    return {"sessions": sessions, "name_browser": name_browser}


class OwnSessionRoutes:
    """Ends sessions of the user."""

    def __init__(self, services: ApiServices, sessions: ConsoleSessions) -> None:
        self._services = services
        self._sessions = sessions

    async def end(self, request: web.Request) -> web.Response:
        """End the session in the form, or all others, and show the list again."""
        user = await self._sessions.admit(request, ConsoleRole.VIEWER)
        form = await read_fields(request)
        self._sessions.require_own_form(request, user, form)
        await self._services.database.write(self._end, request, user, form)
        return web.Response(status=303, headers={"Location": OWN_SESSIONS})

    def _end(
        self, connection: Connection, request: web.Request, user: SignedInUser, form: Form
    ) -> None:
        principal, now = user.session.principal, self._services.clock.now()
        if id_ := form.text("session"):
            count = int(end_own_session(connection, principal, id_))
        else:
            count = end_principal_sessions(connection, principal, but=user.secret, now=now)
        if not count:
            return
        entry = build_audit_entry(
            self._services,
            request,
            now,
            actor=principal,
            action="console.session-end",
            target=None,
            details={"reason": "ended by the user", "sessions": count},
        )
        record_action(connection, self._services, entry)


OWN_SESSIONS_PAGE = ConsolePage(
    path=OWN_SESSIONS,
    view=show_own_sessions,
    template="own_sessions.html.j2",
    section="own-sessions",
)
