"""Sign-in with an admin token, a sign-in link or OpenID Connect, and sign-out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from aiohttp import web
from sqlalchemy import Connection

from tocsin.credentials import (
    LONGEST_SESSION,
    AuthenticationError,
    ConsoleRole,
    ConsoleSession,
    EndedSession,
    IssuerUnavailable,
    NoLongerSignedIn,
    OidcSignIn,
    Principal,
    SessionOrigin,
    SignInResult,
    TokenError,
    begin_session,
    end_issuer_sessions,
    end_session,
    has_people,
    is_redeemable,
    read_expiry,
    redeem_sign_in_link,
)
from tocsin.errors import AccessDeniedError, RequestError
from tocsin.logs import SampledLog
from tocsin.store import clean_text
from tocsin.web.authentication import PRESENTED, AccessControl
from tocsin.web.client_addresses import address_key
from tocsin.web.console import rendering
from tocsin.web.console.forms import Form, read_fields
from tocsin.web.console.sessions import ConsoleSessions, require_own_site
from tocsin.web.context import ApiServices
from tocsin.web.dispatch import build_audit_entry, record_action
from tocsin.web.problems import ProblemError, describe_error
from tocsin.web.request_problems import ISSUER_UNAVAILABLE

SIGN_IN = "/sign-in"
_LONGEST_BROWSER = 300
_INVALID_LINK = (
    "This sign-in link is invalid, has expired or was already used. "
    "To get a new link, run `tocsin admin sign-in-link` on the server."
)


class SignInRoutes:
    """Sign-in and sign-out routes."""

    def __init__(
        self, services: ApiServices, access_control: AccessControl, sessions: ConsoleSessions
    ) -> None:
        self._services = services
        self._access_control = access_control
        self._sessions = sessions

    async def show(self, request: web.Request) -> web.Response:
        """Respond with the sign-in form."""
        return await self.form(request.query.get("next", ""))

    async def take(self, request: web.Request) -> web.Response:
        """Begin a session for an admin token, or show the form with the error."""
        require_own_site(request)
        form = await read_fields(request)
        try:
            session = await self._authenticate(request, form.text("token"))
        except AuthenticationError as error:
            await self.count_failure(request)
            return await self.form(form.get("next", ""), ProblemError(401, str(error)))
        return await self.begin(request, session, form.get("next", ""))

    async def begin(
        self, request: web.Request, session: ConsoleSession, place: str
    ) -> web.Response:
        """Begin the session and redirect to the requested page."""
        now = self._services.clock.now()
        begun = await self._services.database.write(self.begin_session, session, now, request)
        return self.lead(begun, place)

    async def show_link(self, _request: web.Request) -> web.Response:
        """Respond with the form for the code of a sign-in link, which a script fills in."""
        return respond_to_anyone("sign_in_link.html.j2", {})

    async def take_link(self, request: web.Request) -> web.Response:
        """Begin a session for the code of a sign-in link, or show the form with the error."""
        require_own_site(request)
        code = (await read_fields(request)).text("code")
        await self.require_allowed(request)
        database, now = self._services.database, self._services.clock.now()
        begun = None
        if await database.lookup(is_redeemable, code, now):  # a guess writes nothing
            begun = await database.write(self._redeem, code, now, request)
        if begun is None:
            await self.count_failure(request)
            return respond_to_anyone("sign_in_link.html.j2", {}, ProblemError(401, _INVALID_LINK))
        return self.lead(begun, "/")

    def _redeem(
        self, connection: Connection, code: str, now: datetime, request: web.Request
    ) -> tuple[str, datetime] | None:
        name = redeem_sign_in_link(connection, code, now)
        if name is None:
            return None
        end = now + LONGEST_SESSION
        session = ConsoleSession(f"admin:{name}", name, ConsoleRole.ADMIN, end)
        return self.begin_session(connection, session, now, request, {"method": "sign-in-link"})

    def lead(self, begun: tuple[str, datetime], place: str) -> web.Response:
        """Redirect to the page with the cookie of the session."""
        response = web.Response(status=303, headers={"Location": to_local_path(place)})
        self._sessions.remember(response, *begun)
        return response

    async def require_allowed(self, request: web.Request) -> None:
        """Raise ProblemError (429) if the address failed too often."""
        address = self._services.addresses.find(request)
        if self._services.rate_limits.is_failing(address):
            await self._services.rate_limits.count_failure(address)

    async def count_failure(self, request: web.Request) -> None:
        """Count a failed sign-in, also in the audit log; raises ProblemError (429)."""
        address = self._services.addresses.find(request)
        self._services.refusals.count(address_key(address), "credential refused")
        await self.limit_failure(request)

    async def limit_failure(self, request: web.Request) -> None:
        """Count a failed sign-in toward the limit; raises ProblemError (429)."""
        address = self._services.addresses.find(request)
        await self._services.rate_limits.count_failure(address, request.get(PRESENTED))

    async def leave(self, request: web.Request) -> web.Response:
        """Sign out."""
        user = await self._sessions.admit(request, ConsoleRole.VIEWER)
        form: Form = await read_fields(request)
        self._sessions.require_own_form(request, user, form)
        response = web.Response(status=303, headers={"Location": SIGN_IN})
        await self._sessions.leave(response, user)
        return response

    async def _authenticate(self, request: web.Request, token: str) -> ConsoleSession:
        request[PRESENTED] = token
        credential = self._services.authenticator.decode_token(token)
        principal = await self._access_control.authenticate(request, credential, _keep_principal)
        if not principal.is_admin:
            raise AuthenticationError("This is not an admin token.")
        expires_at = read_expiry(token)
        return ConsoleSession(principal.id, principal.name, ConsoleRole.ADMIN, expires_at)

    def begin_session(
        self,
        connection: Connection,
        session: ConsoleSession,
        now: datetime,
        request: web.Request,
        details: Mapping[str, str] | None = None,
    ) -> tuple[str, datetime]:
        """Begin a session that replaces the browser's current one; return its secret and expiry.

        `details` are added to the audit entry.
        """
        entry = build_audit_entry(
            self._services,
            request,
            now,
            actor=session.principal,
            action="console.sign-in",
            target=None,
            details={"role": session.role, **(details or {})},
        )
        before = self._sessions.find(connection, request)
        if before is not None:  # the new cookie replaces this session
            end_session(connection, before.secret)
        browser = clean_text(request.headers.get("User-Agent", ""), _LONGEST_BROWSER)
        origin = SessionOrigin(self._services.addresses.find(request), browser)
        begun = begin_session(connection, replace(session, origin=origin), now)
        record_action(connection, self._services, entry)
        return begun

    async def form(self, place: str, fault: ProblemError | None = None) -> web.Response:
        """Return the sign-in page, which redirects to `place` afterwards."""
        services = self._services
        context = {
            "next": to_local_path(place),
            "has_oidc": services.oidc_sign_in is not None,
            "has_passkeys": await services.database.lookup(has_people),
            "origin": services.passkeys.origin,
        }
        return respond_to_anyone("sign_in.html.j2", context, fault)


def respond_to_anyone(
    template: str, context: Mapping[str, object], fault: ProblemError | None = None
) -> web.Response:
    """Return a page for a visitor who is not signed in, with the error if there is one."""
    everything = {**context, "user": None, "fault": fault}
    response = rendering.respond(template, everything, fault.status if fault else 200)
    response.headers.update(fault.headers if fault else {})
    return response


def to_local_path(place: str) -> str:
    """Return a path of this console, or the path of the overview for any other address."""
    is_ours = place.startswith("/") and not place.startswith(("//", "/\\"))
    return place if is_ours and place.isascii() and place.isprintable() else "/"


def _keep_principal(_connection: Connection, principal: Principal) -> Principal:
    return principal


OIDC_SIGN_IN = "/sign-in/oidc"
_COOKIE_MINUTES = 10
_INVALID_LOGOUT = "The logout token is not valid for this client."
_ISSUER_UNAVAILABLE = (
    "The OpenID Connect issuer is unavailable. Tocsin's log contains the reason. Try again, or "
    "sign in with an admin token."
)
_log = SampledLog()


class OidcSignInRoutes:
    """Sign-in routes for OpenID Connect."""

    def __init__(
        self,
        services: ApiServices,
        sign_in: SignInRoutes,
        oidc: OidcSignIn,
        sessions: ConsoleSessions,
    ) -> None:
        self._services = services
        self._sessions = sessions
        self._sign_in = sign_in
        self._oidc = oidc
        self._cookie = sessions.name_cookie("tocsin-sign-in")

    async def lead(self, request: web.Request) -> web.Response:
        """Redirect the browser to the issuer, and store the attempt in a cookie.

        With `check`, the issuer confirms a session without a prompt.
        """
        place = to_local_path(request.query.get("next", ""))
        is_check = "check" in request.query
        try:
            address, sealed = await self._oidc.begin(place, is_silent=is_check)
        except IssuerUnavailable as error:
            return await self._answer_unavailable(request, error, place)
        headers = {"Location": address, "Cache-Control": "no-store"}
        response = web.Response(status=303, headers=headers)
        self._sessions.keep(response, self._cookie, sealed, _COOKIE_MINUTES * 60)
        return response

    async def arrive(self, request: web.Request) -> web.Response:
        """Begin a session for a response of the issuer, or show the form with the error."""
        response = await self._answer(request)
        self._sessions.forget(response, self._cookie)
        return response

    async def _answer(self, request: web.Request) -> web.Response:
        try:
            arrival = await self._finish(request)
        except NoLongerSignedIn as error:
            await self._end(request, str(error))
            return await self._sign_in.form("", ProblemError(401, str(error)))
        except AuthenticationError as error:
            await self._sign_in.count_failure(request)
            return await self._sign_in.form("", ProblemError(401, str(error)))
        except IssuerUnavailable as error:
            return await self._answer_unavailable(request, error, "")
        except RequestError as error:
            if isinstance(error, AccessDeniedError):
                await self._end(request, str(error))
            return await self._sign_in.form("", describe_error(request, error))
        renew = self._sessions.renew
        if arrival.is_silent and await self._services.database.write(
            renew, request, arrival.session
        ):
            return web.Response(status=303, headers={"Location": to_local_path(arrival.place)})
        return await self._sign_in.begin(request, arrival.session, arrival.place)

    async def _end(self, request: web.Request, reason: str) -> None:
        """End the session of this browser, if the issuer began it."""
        user = await self._services.database.lookup(self._sessions.find, request)
        if user is not None and user.session.check_at is not None:
            await self._services.database.write(self._sessions.end, request, user, reason)

    async def end_sessions(self, request: web.Request) -> web.Response:
        """End the sessions that a logout token names (Back-Channel Logout 1.0 section 2.5)."""
        headers = {"Cache-Control": "no-store"}
        try:
            form = await read_fields(request)
            ended = await self._oidc.logout_tokens.verify(form.get("logout_token", ""))
            await self._services.database.write(self._end_named, request, ended)
        except TokenError:
            await self._sign_in.count_failure(request)
            invalid = {"error": "invalid_request", "error_description": _INVALID_LOGOUT}
            return web.json_response(invalid, status=400, headers=headers)
        except IssuerUnavailable as error:
            _log.warning("logout token not verified", reason=str(error))
            raise ISSUER_UNAVAILABLE.error({"Retry-After": "10"}) from None
        return web.Response(headers=headers)

    def _end_named(self, connection: Connection, request: web.Request, ended: EndedSession) -> None:
        count = end_issuer_sessions(connection, ended.subject, ended.sid, ended.before)
        entry = build_audit_entry(
            self._services,
            request,
            self._services.clock.now(),
            actor="issuer",
            action="console.session-end",
            target=None if ended.subject is None else f"oidc:{ended.subject}",
            details={"reason": "logged out at the issuer", "sessions": count},
        )
        record_action(connection, self._services, entry)

    async def _finish(self, request: web.Request) -> SignInResult:
        await self._sign_in.require_allowed(request)
        # RFC 6749 section 3.1: parameters must not be repeated
        answer = dict(request.query) if len(set(request.query)) == len(request.query) else {}
        return await self._oidc.finish(request.cookies.get(self._cookie, ""), answer)

    async def _answer_unavailable(
        self, request: web.Request, error: IssuerUnavailable, place: str
    ) -> web.Response:
        """Redirect to the page if the session check can wait, or show the form with the error."""
        if await self._services.database.write(self._sessions.postpone, request):
            return web.Response(status=303, headers={"Location": to_local_path(place)})
        _log.warning("openid connect sign-in unavailable", reason=str(error))
        return await self._sign_in.form(
            place, ProblemError(503, _ISSUER_UNAVAILABLE, headers={"Retry-After": "10"})
        )
