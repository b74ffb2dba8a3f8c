"""Signing in with an admin token, pasted once, and signing out."""

from __future__ import annotations

from datetime import datetime

from aiohttp import web
from sqlalchemy import Connection

from tocsin import audit
from tocsin.credentials import (
    AuthenticationError,
    ConsoleRole,
    ConsoleSession,
    Principal,
    begin_session,
    end_session,
    read_expiry,
)
from tocsin.web.addresses import address_key
from tocsin.web.auditing import build_audit_entry
from tocsin.web.calls import ApiServices
from tocsin.web.console import rendering
from tocsin.web.console.forms import Form, read_fields
from tocsin.web.console.visitors import ConsoleSessions, require_own_site
from tocsin.web.gate import AccessControl
from tocsin.web.problems import ErrorResponse

SIGN_IN = "/sign-in"


class SignInRoutes:
    """The door of the console."""

    def __init__(
        self, services: ApiServices, gate: AccessControl, visitors: ConsoleSessions
    ) -> None:
        self._services = services
        self._gate = gate
        self._visitors = visitors

    async def show(self, request: web.Request) -> web.Response:
        """Answer the form."""
        return self.form(request.query.get("next", ""))

    async def take(self, request: web.Request) -> web.Response:
        """Begin a session for whoever holds the admin token, or answer what is wrong with it."""
        require_own_site(request)
        form = await read_fields(request)
        try:
            session = await self._session_of(request, form.text("token"))
        except AuthenticationError as error:
            await self.count_failure(request)
            return self.form(form.get("next", ""), ErrorResponse(401, str(error)))
        return await self.begin(request, session, form.get("next", ""))

    async def begin(
        self, request: web.Request, session: ConsoleSession, place: str
    ) -> web.Response:
        """Begin the session, and lead to the page that was asked for."""
        now = self._services.clock.now()
        secret, expires_at = await self._services.database.write(self._begin, session, now, request)
        response = web.Response(status=303, headers={"Location": to_local_path(place)})
        self._visitors.remember(response, secret, expires_at)
        return response

    async def count_failure(self, request: web.Request) -> None:
        """Count that somebody was not let in, also in the audit log; CallerError (429)."""
        address = self._services.addresses.of(request)
        self._services.refusals.count(address_key(address), "credential refused")
        await self._services.throttle.count_failure(address)

    async def leave(self, request: web.Request) -> web.Response:
        """End the session."""
        visitor = await self._visitors.admit(request, ConsoleRole.VIEWER)
        form: Form = await read_fields(request)
        self._visitors.require_own_form(request, visitor, form)
        response = web.Response(status=303, headers={"Location": SIGN_IN})
        await self._visitors.leave(response, visitor)
        return response

    async def _session_of(self, request: web.Request, token: str) -> ConsoleSession:
        credential = self._services.authenticator.present_token(token)
        principal = await self._gate.authenticate(request, credential, _itself)
        if not principal.is_admin:
            raise AuthenticationError("This token is not an admin's.")
        expires_at = read_expiry(token)
        return ConsoleSession(principal.id, principal.name, ConsoleRole.ADMIN, expires_at)

    def _begin(
        self, connection: Connection, session: ConsoleSession, now: datetime, request: web.Request
    ) -> tuple[str, datetime]:
        entry = build_audit_entry(
            self._services,
            request,
            now,
            actor=session.principal,
            action="console.sign-in",
            target=None,
            details={"role": session.role},
        )
        audit.record(connection, entry)
        before = self._visitors.find(connection, request)
        if before is not None:  # whose cookie this browser forgets
            end_session(connection, before.secret)
        return begin_session(connection, session, now)

    def form(self, place: str, fault: ErrorResponse | None = None) -> web.Response:
        """Return the page to sign in on, which then leads to `place`."""
        context = {
            "visitor": None,
            "next": to_local_path(place),
            "fault": fault,
            "has_oidc": self._services.oidc_sign_in is not None,
        }
        response = rendering.respond("sign_in.html.j2", context, fault.status if fault else 200)
        response.headers.update(fault.headers if fault else {})
        return response


def to_local_path(place: str) -> str:
    """Return a path of this console, the first page's for any other address."""
    is_ours = place.startswith("/") and not place.startswith(("//", "/\\"))
    return place if is_ours and place.isascii() and place.isprintable() else "/"


def _itself(_connection: Connection, principal: Principal) -> Principal:
    return principal
