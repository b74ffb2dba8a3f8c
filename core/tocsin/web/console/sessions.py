"""Console sessions: cookies, roles and form tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from aiohttp import web
from sqlalchemy import Connection

from tocsin.credentials import (
    ConsoleRole,
    ConsoleSession,
    Principal,
    end_session,
    find_session,
    form_token,
    is_form_token,
)
from tocsin.errors import CallerError, TocsinError
from tocsin.web.context import ApiServices

FORM_TOKEN = "form_token"  # noqa: S105 - its name
"""The field by which a form proves that it is one of our pages'."""
ONCE = "once"
"""The field by which a form is known again that is sent twice, say by a double click."""

_LONGEST_SECRET = 100
_OURS = {"", "same-origin", "none"}
_STRANGE = (
    "This form was not sent from a page of this console. Go back, reload the page, try again."
)


class NotSignedIn(TocsinError):  # noqa: N818 - a state, to which the answer is a form
    """Nobody is signed in."""


@dataclass(frozen=True)
class SignedInUser:
    """A person with a session, for the time of one request."""

    session: ConsoleSession
    secret: str

    @property
    def principal(self) -> Principal:
        """Who they are to endpoints and in the audit log."""
        session = self.session
        return Principal(session.principal, session.name, is_admin=self.is_admin)

    @property
    def is_admin(self) -> bool:
        """Whether they may change anything."""
        return self.session.role is ConsoleRole.ADMIN

    @cached_property
    def form_token(self) -> str:
        """What each form of theirs brings along."""
        return form_token(self.secret)


class ConsoleSessions:
    """Lets people in by their cookies."""

    def __init__(self, services: ApiServices) -> None:
        self._services = services
        self._is_secure = services.public_url.startswith("https://")
        # RFC 6265bis section 4.1.3.2: no other host and no page without TLS can set such a cookie
        self._cookie = "__Host-tocsin" if self._is_secure else "tocsin"

    async def admit(self, request: web.Request, role: ConsoleRole) -> SignedInUser:
        """Return who is signed in; raises NotSignedIn, and CallerError (403) without the role."""
        visitor = await self._services.database.lookup(self.find, request)
        if visitor is None:
            raise NotSignedIn("nobody is signed in")
        if not visitor.session.role.includes(role):
            raise CallerError(403, f"This takes the role {role}; you are signed in as a viewer.")
        return visitor

    def find(self, connection: Connection, request: web.Request) -> SignedInUser | None:
        """Return who is signed in, None where nobody is."""
        secret = request.cookies.get(self._cookie, "")
        if not 0 < len(secret) <= _LONGEST_SECRET or not secret.isascii():
            return None
        session = find_session(connection, secret, self._services.clock.now())
        return None if session is None else SignedInUser(session, secret)

    def confirm(self, connection: Connection, request: web.Request) -> None:
        """Return where an admin is still signed in; CallerError (401) elsewhere."""
        visitor = self.find(connection, request)
        if visitor is None or not visitor.is_admin:
            raise CallerError(401, "Your session has ended meanwhile; nothing was changed.")

    def require_own_form(
        self, request: web.Request, visitor: SignedInUser, form: Mapping[str, str]
    ) -> None:
        """Return where the form is one of our pages'; CallerError (403) elsewhere."""
        require_own_site(request)
        if not is_form_token(visitor.secret, form.get(FORM_TOKEN, "")):
            raise CallerError(403, _STRANGE)

    def remember(self, response: web.StreamResponse, secret: str, expires_at: datetime) -> None:
        """Have the browser keep the session."""
        age = int((expires_at - self._services.clock.now()).total_seconds())
        response.set_cookie(
            self._cookie,
            secret,
            max_age=age,
            path="/",
            secure=self._is_secure,
            httponly=True,
            samesite="Lax",  # a link in a message opens a page for whoever is signed in
        )

    async def leave(self, response: web.StreamResponse, visitor: SignedInUser) -> None:
        """End the session, and have the browser forget it."""
        await self._services.database.write(end_session, visitor.secret)
        response.del_cookie(
            self._cookie, path="/", secure=self._is_secure, httponly=True, samesite="Lax"
        )


def require_own_site(request: web.Request) -> None:
    """Return unless the browser says that another site sends this; CallerError (403)."""
    if request.headers.get("Sec-Fetch-Site", "") not in _OURS:
        raise CallerError(403, _STRANGE)
