"""Signing in at the OpenID Connect issuer: the way there, and the way back."""

from __future__ import annotations

import structlog
from aiohttp import web

from tocsin.credentials import AuthenticationError, IssuerUnavailable, OidcSignIn, SignInResult
from tocsin.errors import CallerError
from tocsin.web.calls import ApiServices
from tocsin.web.console.signing_in import SignInRoutes, to_local_path
from tocsin.web.problems import ErrorResponse

OIDC_SIGN_IN = "/sign-in/oidc"
_MINUTES = 10
_AWAY = (
    "The OpenID Connect issuer cannot be asked for now; the log of Tocsin says why. Try again, or "
    "sign in with an admin token."
)
_log = structlog.get_logger()


class OidcSignInRoutes:
    """The door for those whom the issuer knows."""

    def __init__(self, services: ApiServices, sign_in: SignInRoutes, oidc: OidcSignIn) -> None:
        self._services = services
        self._sign_in = sign_in
        self._oidc = oidc
        self._is_secure = services.public_url.startswith("https://")
        # as with the session's: no other host and no page without TLS can set such a cookie
        self._cookie = "__Host-tocsin-sign-in" if self._is_secure else "tocsin-sign-in"

    async def lead(self, request: web.Request) -> web.Response:
        """Send the browser to the issuer, with what it has to bring back."""
        place = to_local_path(request.query.get("next", ""))
        try:
            address, sealed = await self._oidc.begin(place)
        except IssuerUnavailable as error:
            return self._away(error, place)
        headers = {"Location": address, "Cache-Control": "no-store"}
        response = web.Response(status=303, headers=headers)
        self._keep(response, sealed)
        return response

    async def arrive(self, request: web.Request) -> web.Response:
        """Begin a session for whoever comes from the issuer, or answer what was wrong."""
        response = await self._answer(request)
        response.del_cookie(
            self._cookie, path="/", secure=self._is_secure, httponly=True, samesite="Lax"
        )
        return response

    async def _answer(self, request: web.Request) -> web.Response:
        try:
            arrival = await self._finish(request)
        except AuthenticationError as error:
            await self._sign_in.count_failure(request)
            return self._sign_in.form("", ErrorResponse(401, str(error)))
        except IssuerUnavailable as error:
            return self._away(error, "")
        except CallerError as error:
            return self._sign_in.form("", ErrorResponse(error.status, error.detail, error.headers))
        return await self._sign_in.begin(request, arrival.session, arrival.place)

    async def _finish(self, request: web.Request) -> SignInResult:
        address = self._services.addresses.of(request)
        if self._services.throttle.is_failing(address):
            await self._services.throttle.count_failure(address)
        # RFC 6749 section 3.1: no parameter comes twice
        answer = dict(request.query) if len(set(request.query)) == len(request.query) else {}
        return await self._oidc.finish(request.cookies.get(self._cookie, ""), answer)

    def _away(self, error: IssuerUnavailable, place: str) -> web.Response:
        _log.warning("nobody can sign in at the OpenID Connect issuer", reason=str(error))
        return self._sign_in.form(place, ErrorResponse(503, _AWAY, {"Retry-After": "10"}))

    def _keep(self, response: web.Response, sealed: str) -> None:
        response.set_cookie(
            self._cookie,
            sealed,
            max_age=_MINUTES * 60,
            path="/",
            secure=self._is_secure,
            httponly=True,
            samesite="Lax",  # or it would not come along on the way back
        )
