"""Console sessions: cookies, roles and form tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from aiohttp import web
from sqlalchemy import Connection

from tocsin.credentials import (
    USE_PRECISION,
    ConsoleRole,
    ConsoleSession,
    NoLongerSignedIn,
    Principal,
    Scope,
    SessionUnconfirmed,
    end_session,
    find_session,
    form_token,
    is_form_token,
    postpone_check,
    recheck_session,
    record_use,
    renew_session,
)
from tocsin.errors import AccessDeniedError, TocsinError
from tocsin.web.context import ApiServices
from tocsin.web.dispatch import build_audit_entry, record_action
from tocsin.web.problems import ProblemError

FORM_TOKEN = "form_token"  # noqa: S105 - its name
"""Form field that proves that a form comes from this console."""
ONCE = "once"
"""Form field that identifies a form, so that a second submission (a double click) is detected."""

VERSION = "version"
"""Form field with the version tag of the record when the form was rendered."""

RECENT = timedelta(minutes=15)
"""Age up to which a session may give access to others or to another device.

So a stolen cookie gives no access that outlasts the session.
"""
NOT_RECENT = (
    "Nothing was changed, because your last sign-in was too long ago. Sign out, sign in again and "
    f"repeat the change within {RECENT.total_seconds() / 60:.0f} minutes."
)
_LONGEST_SECRET = 100
_SCOPES = tuple(scope for scope in Scope if scope.endswith(":read"))
"""The scopes of every role."""
_SAME_SITE = {"", "same-origin", "none"}
_FOREIGN_FORM = (
    "Tocsin could not verify that this form came from the console. "
    "Go back, reload the page and try again."
)


class NotSignedIn(TocsinError):  # noqa: N818 - a state that leads to the sign-in form
    """The request has no valid session."""


@dataclass(frozen=True)
class SignedInUser:
    """A signed-in user, for one request."""

    session: ConsoleSession
    secret: str

    @property
    def principal(self) -> Principal:
        """Principal for endpoints and the audit log."""
        session, is_admin = self.session, self.session.role is ConsoleRole.ADMIN
        return Principal(session.principal, session.name, _SCOPES, is_admin=is_admin)

    def may(self, role: str) -> bool:
        """Return whether the user has all permissions of a role."""
        return self.session.role.includes(ConsoleRole(role))

    def has_recent_sign_in(self, now: datetime) -> bool:
        """Return whether the session began recently enough to give access."""
        begun_at = self.session.begun_at
        return begun_at is not None and now - begun_at <= RECENT

    def require(self, role: ConsoleRole) -> None:
        """Raise ProblemError (403) if the user lacks a permission of a role."""
        if not self.session.role.includes(role):
            raise ProblemError(
                403,
                f"You need the {role} role, but you have the {self.session.role} role. "
                "To get access, ask an admin.",
            )

    @cached_property
    def form_token(self) -> str:
        """Token that each form of the user must send."""
        return form_token(self.secret)


class ConsoleSessions:
    """Finds, creates and ends sessions by their cookies."""

    def __init__(self, services: ApiServices) -> None:
        self._services = services
        self._is_secure = services.public_url.startswith("https://")
        self._cookie = self.name_cookie("tocsin")

    def name_cookie(self, name: str) -> str:
        """Return the full name of a cookie that only the console can set."""
        # RFC 6265bis section 4.1.3.2: other hosts and pages without TLS cannot set such a cookie
        return f"__Host-{name}" if self._is_secure else name

    async def admit(self, request: web.Request, role: ConsoleRole) -> SignedInUser:
        """Return the signed-in user, after a session check with the issuer if a check is due.

        Raises NotSignedIn, CheckRequired if only the browser can start the check, and ProblemError
        (403) if the user lacks the role.
        """
        user = await self._services.database.lookup(self._find_any, request)
        if user is None:
            raise NotSignedIn("not signed in")
        if user.session.is_due(self._services.clock.now()):
            user = await self._check(request, user)
        await self._record_use(user)
        user.require(role)
        return user

    async def _record_use(self, user: SignedInUser) -> None:
        now, used_at = self._services.clock.now(), user.session.used_at
        if used_at is None or now - used_at >= USE_PRECISION:
            await self._services.database.write_behind(record_use, user.secret, now)

    async def _check(self, request: web.Request, user: SignedInUser) -> SignedInUser:
        """Return the user with the session that the issuer confirmed."""
        services = self._services
        try:
            session = await recheck_session(
                services.database,
                services.oidc_sign_in,
                user.session,
                user.secret,
                services.clock,
                in_browser=request.method in {"GET", "HEAD"},
            )
        except SessionUnconfirmed as error:
            raise NotSignedIn(str(error)) from None
        except (NoLongerSignedIn, AccessDeniedError) as error:
            await services.database.write(self.end, request, user, str(error))
            raise NotSignedIn(str(error)) from None
        return SignedInUser(session, user.secret)

    def find(self, connection: Connection, request: web.Request) -> SignedInUser | None:
        """Return the signed-in user, None if there is none or the session needs a check."""
        user = self._find_any(connection, request)
        is_overdue = user is not None and user.session.is_overdue(self._services.clock.now())
        return None if is_overdue else user

    def _find_any(self, connection: Connection, request: web.Request) -> SignedInUser | None:
        secret = request.cookies.get(self._cookie, "")
        if not 0 < len(secret) <= _LONGEST_SECRET or not secret.isascii():
            return None
        session = find_session(connection, secret, self._services.clock.now())
        return None if session is None else SignedInUser(session, secret)

    def end(
        self, connection: Connection, request: web.Request, user: SignedInUser, reason: str
    ) -> None:
        """End a session that its issuer did not confirm, with an entry in the audit log."""
        entry = build_audit_entry(
            self._services,
            request,
            self._services.clock.now(),
            actor=user.session.principal,
            action="console.session-end",
            target=None,
            details={"reason": reason},
        )
        end_session(connection, user.secret)
        record_action(connection, self._services, entry)

    def renew(self, connection: Connection, request: web.Request, session: ConsoleSession) -> bool:
        """Renew the browser's session if it belongs to the same user; return whether it does."""
        user = self._find_any(connection, request)
        if user is None or user.session.principal != session.principal:
            return False
        renew_session(connection, user.secret, session)
        return True

    def postpone(self, connection: Connection, request: web.Request) -> bool:
        """Postpone a due check while the issuer is unavailable; return whether that is allowed."""
        user, now = self.find(connection, request), self._services.clock.now()
        if user is None or not user.session.is_due(now):
            return False
        postpone_check(connection, user.secret, user.session, now)
        return True

    def confirm(self, connection: Connection, request: web.Request, role: ConsoleRole) -> None:
        """Raise ProblemError (401) unless a user with the role is still signed in."""
        user = self.find(connection, request)
        if user is None or not user.session.role.includes(role):
            raise ProblemError(
                401, "Your session has ended. Nothing was changed. Sign in and try again."
            )

    def require_own_form(
        self, request: web.Request, user: SignedInUser, form: Mapping[str, str]
    ) -> None:
        """Raise ProblemError (403) unless the form comes from this console."""
        require_own_site(request)
        if not is_form_token(user.secret, form.get(FORM_TOKEN, "")):
            raise ProblemError(403, _FOREIGN_FORM)

    def remember(self, response: web.StreamResponse, secret: str, expires_at: datetime) -> None:
        """Set the session cookie."""
        age = int((expires_at - self._services.clock.now()).total_seconds())
        self.keep(response, self._cookie, secret, age)

    def keep(self, response: web.StreamResponse, name: str, value: str, seconds: int) -> None:
        """Set a cookie that only the console receives."""
        response.set_cookie(
            name,
            value,
            max_age=seconds,
            path="/",
            secure=self._is_secure,
            httponly=True,
            # so that links in messages open pages for signed-in users, and so does an issuer
            samesite="Lax",
        )

    async def leave(self, response: web.StreamResponse, user: SignedInUser) -> None:
        """End the session and delete its cookie."""
        await self._services.database.write(end_session, user.secret)
        self.forget(response, self._cookie)

    def forget(self, response: web.StreamResponse, name: str) -> None:
        """Delete a cookie."""
        response.del_cookie(name, path="/", secure=self._is_secure, httponly=True, samesite="Lax")


def require_own_site(request: web.Request) -> None:
    """Raise ProblemError (403) if the browser reports a cross-site request."""
    if request.headers.get("Sec-Fetch-Site", "") not in _SAME_SITE:
        raise ProblemError(403, _FOREIGN_FORM)
