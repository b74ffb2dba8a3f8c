"""Who is let in: reads the credential, identifies its holder and checks what they may do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from aiohttp import hdrs, web
from sqlalchemy import Connection

from tocsin.credentials import (
    AdminToken,
    AuthenticationError,
    Authenticator,
    Credential,
    Principal,
    Unproven,
)
from tocsin.errors import CallerError
from tocsin.web.calls import Access, Role, Services
from tocsin.web.problems import Kind, refusal

API_KEY = "X-API-Key"

Result = TypeVar("Result")
Work = Callable[[Connection, Principal], Result]


class Gate:
    """Runs work for those who may have it done, and for nobody else."""

    def __init__(self, services: Services) -> None:
        self._database = services.database
        self._authenticator = Authenticator(
            services.hasher, services.admins, services.clock, key_prefix=services.key_prefix
        )

    async def admit(self, request: web.Request, access: Access, work: Work[Result]) -> Result:
        """Return what `work(connection, principal)` returns; CallerError (400, 401, 403).

        The record of the credential and the work are read in one go, since the way to the
        database costs more than either.
        """
        try:
            credential = self._presented(request)
            return await self._run(credential, access, work)
        except AuthenticationError as error:
            headers = {"WWW-Authenticate": _challenge(request, access)}
            raise CallerError(401, str(error), headers=headers) from None

    def _presented(self, request: web.Request) -> Credential:
        keys = request.headers.getall(API_KEY, [])
        authorizations = request.headers.getall(hdrs.AUTHORIZATION, [])
        match [*keys, *authorizations]:
            case []:
                raise AuthenticationError(f"Send an API key in {API_KEY}, or a bearer token.")
            case [text] if keys:
                return self._authenticator.present_key(text)
            case [text]:
                return self._bearer(text)
        raise CallerError(400, f"Send one credential: {API_KEY} or Authorization, once.")

    def _bearer(self, authorization: str) -> AdminToken:
        scheme, _, token = authorization.partition(" ")
        if scheme.casefold() != "bearer":
            raise AuthenticationError("Authorization takes the scheme Bearer.")
        return self._authenticator.present_token(token.strip())

    async def _run(self, credential: Credential, access: Access, work: Work[Result]) -> Result:
        proven: str | None = None
        while True:
            try:
                return await self._database.read(self._enter, credential, proven, access, work)
            except Unproven as unproven:
                await self._authenticator.prove(credential, unproven.stored)
                proven = unproven.stored

    def _enter(
        self,
        connection: Connection,
        credential: Credential,
        proven: str | None,
        access: Access,
        work: Work[Result],
    ) -> Result:
        principal = self._authenticator.identify(connection, credential, proven)
        authorize(principal, access)
        return work(connection, principal)


def authorize(principal: Principal, access: Access) -> None:
    """Return where the principal may do what the endpoint does; CallerError (403) elsewhere."""
    if access is Role.ADMIN:
        if not principal.is_admin:
            raise CallerError(403, "This endpoint is for callers with the admin role.")
    elif access not in principal.scopes:
        raise refusal(
            Kind.MISSING_SCOPE,
            403,
            f"API key does not have the required scope: {access}",
            required_scope=access,
        )


def _challenge(request: web.Request, access: Access) -> str:
    """Return what RFC 9110 section 11.6.1 asks for: how to authenticate here."""
    if access is not Role.ADMIN:
        return 'ApiKey realm="tocsin"'
    # RFC 6750 section 3.1: an error code only where a token was sent
    presented = hdrs.AUTHORIZATION in request.headers
    return 'Bearer realm="tocsin"' + (', error="invalid_token"' if presented else "")
