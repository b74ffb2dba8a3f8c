"""From an endpoint to what aiohttp calls: admission, parsing, the transaction, the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from inspect import iscoroutinefunction
from typing import cast

import orjson
from aiohttp import web
from sqlalchemy import Connection

from tocsin.credentials import AuthenticationError, Principal
from tocsin.web.calls import (
    AccessRole,
    ApiServices,
    AsyncHandler,
    Endpoint,
    RequestContext,
    Response,
    TransactionHandler,
)
from tocsin.web.changing import MutationHandler
from tocsin.web.client_authentication import read_client_credentials, read_form
from tocsin.web.conditional import apply_etag
from tocsin.web.gate import AccessControl
from tocsin.web.idempotency import (
    IdempotentRequest,
    InFlightRequests,
    compute_fingerprint,
    read_idempotency_key,
)
from tocsin.web.parsing import parse_body, parse_query, require_acceptable
from tocsin.web.problems import ErrorResponse, OAuthError, describe_error

HttpHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_NOBODY = Principal("", "")


def make_handler(endpoint: Endpoint, services: ApiServices, gate: AccessControl) -> HttpHandler:
    """Return what answers the endpoint's requests."""
    if endpoint.access is AccessRole.CLIENT:
        return _OAuthEndpoint(endpoint, services, gate).handle
    if iscoroutinefunction(endpoint.handler):
        return _AsyncEndpoint(endpoint, services, gate).handle
    kind = _ReadEndpoint if endpoint.method == "GET" else _MutationEndpoint
    return kind(endpoint, services, gate).handle


class _EndpointHandler:
    """What the kinds have in common."""

    def __init__(self, endpoint: Endpoint, services: ApiServices, gate: AccessControl) -> None:
        self._endpoint = endpoint
        self._services = services
        self._gate = gate

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return the answer to a request."""
        raise NotImplementedError

    def _call(self, request: web.Request, principal: Principal) -> RequestContext:
        endpoint = self._endpoint
        path = request.match_info
        if not all(part.isprintable() for part in path.values()):
            raise web.HTTPNotFound
        require_acceptable(request, endpoint.media_type)
        query = parse_query(request.rel_url, endpoint.query)
        return RequestContext(
            services=self._services, principal=principal, request=request, path=path, query=query
        )

    def _respond(self, request: web.Request, answer: Response) -> web.Response:
        content, media_type = answer.content, self._endpoint.media_type
        response = web.Response(
            body=content if isinstance(content, bytes) else orjson.dumps(content),
            status=answer.status or self._endpoint.status,
            headers=answer.headers,
            content_type=media_type,
            charset="utf-8" if media_type.startswith("text/") else None,
        )
        if self._endpoint.method == "GET" and response.status == self._endpoint.status:
            return apply_etag(request, response)
        return response


class _ReadEndpoint(_EndpointHandler):
    """Work that is done in the same read that identifies the caller."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return what the handler read."""
        serve = cast("TransactionHandler", self._endpoint.handler)

        def work(connection: Connection, principal: Principal) -> web.Response:
            return self._respond(request, serve(connection, self._call(request, principal)))

        endpoint = self._endpoint
        return await self._gate.admit(request, endpoint.access, work, is_brief=endpoint.is_brief)


class _AsyncEndpoint(_EndpointHandler):
    """Work that sees to the database by itself."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return what the handler answers."""
        answer = cast("AsyncHandler", self._endpoint.handler)
        principal = _NOBODY
        if self._endpoint.access not in {AccessRole.PUBLIC, AccessRole.SENDER}:
            principal = await self._gate.admit(request, self._endpoint.access, _keep_principal)
        return self._respond(request, await answer(self._call(request, principal)))


class _MutationEndpoint(_EndpointHandler):
    """Work that is done in one transaction with its audit row and its stored answer."""

    def __init__(self, endpoint: Endpoint, services: ApiServices, gate: AccessControl) -> None:
        super().__init__(endpoint, services, gate)
        self._in_flight = InFlightRequests()
        self._changing = MutationHandler(endpoint, services, self._confirm)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return what the handler answered, now or to an earlier request with the same key."""
        endpoint = self._endpoint
        principal = await self._gate.admit(request, endpoint.access, _keep_principal)
        key = read_idempotency_key(request) if endpoint.idempotent else None
        call = self._call(request, principal)
        if endpoint.body is not None:
            body = await parse_body(request, endpoint.body, required=endpoint.body_required)
            call = replace(call, body=body)
        if key is None:
            return self._respond(request, await self._changing.change(call))
        attempt = IdempotentRequest(principal.id, key, compute_fingerprint(request, call.body))
        with self._in_flight.hold(attempt):
            return self._respond(request, await self._changing.change_once(call, attempt))

    def _confirm(self, connection: Connection, request: web.Request) -> None:
        self._gate.confirm(connection, request, self._endpoint.access)


class _OAuthEndpoint(_MutationEndpoint):
    """What OAuth 2.0 clients ask for: judged by its shape, then by its credentials."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return what the handler answered; OAuthError for whatever is refused."""
        try:
            return await self._admit(request)
        except OAuthError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is answered in one form
            raise _to_oauth_error(describe_error(request, error)) from None

    async def _admit(self, request: web.Request) -> web.Response:
        try:
            return await self._serve(request)
        except AuthenticationError as error:
            await self._services.throttle.count_failure(self._services.addresses.of(request))
            headers = {"WWW-Authenticate": 'Basic realm="tocsin"'}
            raise OAuthError("invalid_client", str(error), status=401, headers=headers) from None

    async def _serve(self, request: web.Request) -> web.Response:
        form = await read_form(request)
        call = replace(self._call(request, _NOBODY), body=form)
        if self._endpoint.prepare is not None:
            await self._endpoint.prepare(call)
        credential = read_client_credentials(request, call.body)
        principal = await self._gate.authenticate(request, credential, _keep_principal)
        call = replace(call, principal=principal)
        database = self._services.database
        run = database.lookup if self._endpoint.is_brief else database.write
        return self._respond(request, await run(self._changing.apply, call, None))

    def _confirm(self, connection: Connection, request: web.Request) -> None:
        self._gate.reidentify(connection, request)


def _to_oauth_error(fault: ErrorResponse) -> OAuthError:
    """Return an error in the form of RFC 6749 section 5.2, which knows few statuses."""
    match fault.status:
        case 429 | 503:
            code = "temporarily_unavailable"
        case 500:
            code = "server_error"
        case 413:
            code = "invalid_request"
        case _:
            return OAuthError("invalid_request", fault.detail)
    return OAuthError(code, fault.detail, status=fault.status, headers=dict(fault.headers))


def _keep_principal(_connection: Connection, principal: Principal) -> Principal:
    return principal
