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
from tocsin.web.calls import Answer, Answering, Call, Endpoint, Role, Services, Serving
from tocsin.web.changing import Changing
from tocsin.web.client_authentication import present_client, read_form
from tocsin.web.conditional import with_etag
from tocsin.web.gate import Gate
from tocsin.web.idempotency import (
    Attempt,
    InFlight,
    fingerprint,
    presented_key,
)
from tocsin.web.parsing import parse_body, parse_query, require_acceptable
from tocsin.web.problems import Fault, OAuthError, fault_of

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_NOBODY = Principal("", "")


def make_handler(endpoint: Endpoint, services: Services, gate: Gate) -> Handler:
    """Return what answers the endpoint's requests."""
    if endpoint.access is Role.CLIENT:
        return _ClientServed(endpoint, services, gate).handle
    if iscoroutinefunction(endpoint.handler):
        return _Answered(endpoint, services, gate).handle
    kind = _Read if endpoint.method == "GET" else _Changed
    return kind(endpoint, services, gate).handle


class _Handler:
    """What the kinds have in common."""

    def __init__(self, endpoint: Endpoint, services: Services, gate: Gate) -> None:
        self._endpoint = endpoint
        self._services = services
        self._gate = gate

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return the answer to a request."""
        raise NotImplementedError

    def _call(self, request: web.Request, principal: Principal) -> Call:
        endpoint = self._endpoint
        path = request.match_info
        if not all(part.isprintable() for part in path.values()):
            raise web.HTTPNotFound
        require_acceptable(request, endpoint.media_type)
        query = parse_query(request.rel_url, endpoint.query)
        return Call(
            services=self._services, principal=principal, request=request, path=path, query=query
        )

    def _respond(self, request: web.Request, answer: Answer) -> web.Response:
        content, media_type = answer.content, self._endpoint.media_type
        response = web.Response(
            body=content if isinstance(content, bytes) else orjson.dumps(content),
            status=answer.status or self._endpoint.status,
            headers=answer.headers,
            content_type=media_type,
            charset="utf-8" if media_type.startswith("text/") else None,
        )
        if self._endpoint.method == "GET" and response.status == self._endpoint.status:
            return with_etag(request, response)
        return response


class _Read(_Handler):
    """Work that is done in the same read that identifies the caller."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return what the handler read."""
        serve = cast("Serving", self._endpoint.handler)

        def work(connection: Connection, principal: Principal) -> web.Response:
            return self._respond(request, serve(connection, self._call(request, principal)))

        endpoint = self._endpoint
        return await self._gate.admit(request, endpoint.access, work, is_brief=endpoint.is_brief)


class _Answered(_Handler):
    """Work that sees to the database by itself."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return what the handler answers."""
        answer = cast("Answering", self._endpoint.handler)
        principal = _NOBODY
        if self._endpoint.access not in {Role.PUBLIC, Role.SENDER}:
            principal = await self._gate.admit(request, self._endpoint.access, _itself)
        return self._respond(request, await answer(self._call(request, principal)))


class _Changed(_Handler):
    """Work that is done in one transaction with its audit row and its stored answer."""

    def __init__(self, endpoint: Endpoint, services: Services, gate: Gate) -> None:
        super().__init__(endpoint, services, gate)
        self._in_flight = InFlight()
        self._changing = Changing(endpoint, services, self._confirm)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return what the handler answered, now or to an earlier request with the same key."""
        endpoint = self._endpoint
        principal = await self._gate.admit(request, endpoint.access, _itself)
        key = presented_key(request) if endpoint.idempotent else None
        call = self._call(request, principal)
        if endpoint.body is not None:
            body = await parse_body(request, endpoint.body, required=endpoint.body_required)
            call = replace(call, body=body)
        if key is None:
            return self._respond(request, await self._changing.change(call))
        attempt = Attempt(principal.id, key, fingerprint(request, call.body))
        with self._in_flight.hold(attempt):
            return self._respond(request, await self._changing.change_once(call, attempt))

    def _confirm(self, connection: Connection, request: web.Request) -> None:
        self._gate.confirm(connection, request, self._endpoint.access)


class _ClientServed(_Changed):
    """What OAuth 2.0 clients ask for: judged by its shape, then by its credentials."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return what the handler answered; OAuthError for whatever is refused."""
        try:
            return await self._admit(request)
        except OAuthError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is answered in one form
            raise _as_oauth(fault_of(request, error)) from None

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
        credential = present_client(request, call.body)
        principal = await self._gate.authenticate(request, credential, _itself)
        call = replace(call, principal=principal)
        database = self._services.database
        run = database.lookup if self._endpoint.is_brief else database.write
        return self._respond(request, await run(self._changing.apply, call, None))

    def _confirm(self, connection: Connection, request: web.Request) -> None:
        self._gate.reidentify(connection, request)


def _as_oauth(fault: Fault) -> OAuthError:
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


def _itself(_connection: Connection, principal: Principal) -> Principal:
    return principal
