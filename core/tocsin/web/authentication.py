"""Authentication and authorization of API requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeGuard, TypeVar

from aiohttp import hdrs, web
from sqlalchemy import Connection

from tocsin.credentials import (
    AuthenticationError,
    BusyError,
    ClientSecret,
    Credential,
    IssuerUnavailable,
    KeyValue,
    Principal,
    ProofRequired,
)
from tocsin.web.context import Access, AccessRole, ApiServices
from tocsin.web.problems import ProblemError
from tocsin.web.request_problems import (
    ADMIN_REQUIRED,
    ISSUER_UNAVAILABLE,
    MISSING_SCOPE,
    TOO_MANY_VERIFICATIONS,
    TWO_CREDENTIALS,
    UNAUTHORIZED,
    UNAUTHORIZED_ADMIN,
)

API_KEY_HEADER = "X-API-Key"
RATE_LIMIT_FIELDS = web.RequestKey("rate-limit-fields", Mapping)
"""Key of the rate-limit header fields of a request."""

PRESENTED = web.RequestKey("presented", str)
"""Key of the credential as it was sent."""
_ADMITTED = web.RequestKey("admitted", tuple)

Result = TypeVar("Result")
Work = Callable[[Connection, Principal], Result]


class AccessControl:
    """Runs work for callers who are authenticated and authorized."""

    def __init__(self, services: ApiServices) -> None:
        self._database = services.database
        self._authenticator = services.authenticator
        self._rate_limits = services.rate_limits
        self._addresses = services.addresses

    async def admit(
        self, request: web.Request, access: Access, work: Work[Result], *, is_brief: bool = True
    ) -> Result:
        """Return the result of `work(connection, principal)`; ProblemError (400, 401, 403, 429).

        The same database access loads the credential's record and runs `work`, because a round
        trip to the database costs more than either.
        """

        def authorized(connection: Connection, principal: Principal) -> Result:
            authorize(principal, access)
            return work(connection, principal)

        try:
            credential = self._find_credential(request, access)
            return await self.authenticate(request, credential, authorized, is_brief=is_brief)
        except AuthenticationError as error:
            address = self._addresses.find(request)
            await self._rate_limits.count_failure(address, request.get(PRESENTED))
            raise _unauthorized(request, access, error) from None

    def confirm(self, connection: Connection, request: web.Request, access: Access) -> None:
        """Raise ProblemError (401, 403) if the caller has lost access since it was admitted.

        Call this method in the transaction of a change, because receiving a slow body, hashing or
        waiting takes time, and the credential may have become invalid meanwhile.
        """
        try:
            authorize(self.reidentify(connection, request), access)
        except AuthenticationError as error:
            raise _unauthorized(request, access, error) from None

    def reidentify(self, connection: Connection, request: web.Request) -> Principal:
        """Return the admitted caller, from its current record; raises AuthenticationError."""
        credential, proven = request[_ADMITTED]
        try:
            return self._authenticator.identify(connection, credential, proven)
        except ProofRequired:  # the hash is another one by now
            raise AuthenticationError("The credential is no longer valid.") from None

    async def authenticate(
        self,
        request: web.Request,
        credential: Credential,
        work: Work[Result],
        *,
        is_brief: bool = True,
    ) -> Result:
        """Return the result of `work` for the holder of this credential.

        Raises AuthenticationError, which the caller counts, and ProblemError (429, 503).
        """
        address, sent = self._addresses.find(request), request.get(PRESENTED)
        is_known = self._authenticator.was_verified(credential)
        if not is_known and self._rate_limits.is_failing(address, sent):
            await self._rate_limits.count_failure(address, sent)
        try:
            credential = await self._authenticator.resolve(credential)
        except IssuerUnavailable:
            raise ISSUER_UNAVAILABLE.error({"Retry-After": "10"}) from None

        def enter(connection: Connection, proven: str | None) -> Result:
            principal = self._authenticator.identify(connection, credential, proven)
            request[_ADMITTED] = credential, proven
            request[RATE_LIMIT_FIELDS] = self._rate_limits.count_request(principal.id)
            return work(connection, principal)

        read = self._database.lookup if is_brief else self._database.read
        try:
            return await read(enter, None)
        except ProofRequired as unproven:
            assert isinstance(credential, KeyValue | ClientSecret)  # noqa: S101 - others need none
            proven = await self._prove(request, credential, unproven)
        except AuthenticationError:
            # Attempts at unknown identifiers are limited too: the limit must not tell them apart
            if self._is_guess(credential) and not self._is_repeated(request, address):
                self._rate_limits.try_secret(credential.identifier, address)
            raise
        return await read(enter, proven)

    async def _prove(
        self, request: web.Request, secret: KeyValue | ClientSecret, unproven: ProofRequired
    ) -> str:
        """Return the hash that matches the secret, at the cost of one or two Argon2id runs."""
        address = self._addresses.find(request)
        charged = not (
            self._authenticator.is_being_proven(secret) or self._is_repeated(request, address)
        )
        if charged:
            self._rate_limits.try_secret(secret.identifier, address)
        try:
            proven = await self._authenticator.prove(secret, unproven.hashes)
        except BusyError:
            if charged:
                self._rate_limits.give_back_secret(secret.identifier, address)
            raise TOO_MANY_VERIFICATIONS.error({"Retry-After": "1"}) from None
        if charged:
            self._rate_limits.give_back_secret(secret.identifier, address)
        return proven

    def _is_guess(self, credential: Credential) -> TypeGuard[KeyValue | ClientSecret]:
        is_secret = isinstance(credential, KeyValue | ClientSecret)
        return is_secret and not self._authenticator.was_verified(credential)

    def _is_repeated(self, request: web.Request, address: str) -> bool:
        """Return whether the address repeats a rejected credential, without an Argon2id run."""
        return self._rate_limits.is_repeated(address, request.get(PRESENTED))

    def _find_credential(self, request: web.Request, access: Access) -> Credential:
        keys = request.headers.getall(API_KEY_HEADER, [])
        authorizations = request.headers.getall(hdrs.AUTHORIZATION, [])
        match [*keys, *authorizations]:
            case []:
                # no credential was guessed: this does not count as a failure
                message = (
                    f"Send an API key in {API_KEY_HEADER}, or a bearer token; credentials in the "
                    f"URL are ignored."
                )
                raise _unauthorized(request, access, AuthenticationError(message))
            case [text]:
                request[PRESENTED] = text
                return self._authenticator.decode_key(text) if keys else self._decode_bearer(text)
        raise TWO_CREDENTIALS.error()

    def _decode_bearer(self, authorization: str) -> Credential:
        scheme, _, token = authorization.partition(" ")
        if scheme.casefold() != "bearer":
            raise AuthenticationError("Use the Bearer scheme in Authorization.")
        return self._authenticator.decode_token(token.strip())


def authorize(principal: Principal, access: Access) -> None:
    """Raise ProblemError (403) unless the principal may call the endpoint."""
    if access is AccessRole.ADMIN:
        if not principal.is_admin:
            raise ADMIN_REQUIRED.error()
    elif access not in principal.scopes:
        raise MISSING_SCOPE.error(required_scope=access)


def _unauthorized(request: web.Request, access: Access, error: AuthenticationError) -> ProblemError:
    headers = {"WWW-Authenticate": _challenge(request, access)}
    problem = UNAUTHORIZED_ADMIN if access is AccessRole.ADMIN else UNAUTHORIZED
    return problem.error(headers, error=error)


def _challenge(request: web.Request, access: Access) -> str:
    """Return the challenge (RFC 9110 section 11.6.1), which states how to authenticate."""
    # RFC 6750 section 3.1: an error code only if a token was sent
    error = ', error="invalid_token"' if hdrs.AUTHORIZATION in request.headers else ""
    bearer = f'Bearer realm="tocsin"{error}'
    return bearer if access is AccessRole.ADMIN else f'ApiKey realm="tocsin", {bearer}'
