"""Dispatch of requests to endpoint handlers: admission, parsing, transaction, audit entry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime
from inspect import iscoroutinefunction
from typing import cast

import orjson
from aiohttp import web
from sqlalchemy import Connection

from tocsin import audit
from tocsin.credentials import AuthenticationError, Principal
from tocsin.model import Json
from tocsin.web.authentication import AccessControl, read_client_credentials, read_form
from tocsin.web.context import (
    AccessRole,
    ApiServices,
    AsyncHandler,
    AuditedChange,
    Endpoint,
    RequestContext,
    Response,
    TransactionHandler,
)
from tocsin.web.idempotency import (
    AlreadyApplied,
    IdempotentRequest,
    InFlightRequests,
    StoredResponse,
    compute_fingerprint,
    find_stored_response,
    read_idempotency_key,
    store_response,
)
from tocsin.web.parsing import parse_body, parse_query, require_acceptable
from tocsin.web.problems import OAuthError, describe_error, to_oauth_error
from tocsin.web.responses import REQUEST_ID_KEY, apply_etag


def build_audit_entry(
    services: ApiServices,
    request: web.Request,
    at: datetime,
    *,
    actor: str,
    action: str,
    target: str | None,
    details: Mapping[str, Json],
) -> audit.AuditRecord:
    """Return the entry of what is done by a request, with its address and its id."""
    return audit.AuditRecord(
        at=at,
        actor=actor,
        action=action,
        target=target,
        address=services.addresses.of(request),
        request_id=request[REQUEST_ID_KEY],
        details=details,
    )


ConfirmAccess = Callable[[Connection, web.Request], object]
"""Raises where whoever was let in may not do it any more."""


class MutationHandler:
    """Runs an endpoint's handler for callers who were let in."""

    def __init__(self, endpoint: Endpoint, services: ApiServices, confirm: ConfirmAccess) -> None:
        self._endpoint = endpoint
        self._services = services
        self._confirm = confirm

    async def change(
        self, call: RequestContext, attempt: IdempotentRequest | None = None
    ) -> Response:
        """Return what the handler answers, once all that it did is stored.

        With an `attempt` its answer is stored too; AlreadyDone where there is one for it.
        """
        if self._endpoint.prepare is not None:
            call = replace(call, prepared=await self._endpoint.prepare(call))
        return await self._services.database.write(self.apply, call, attempt)

    async def change_once(self, call: RequestContext, attempt: IdempotentRequest) -> Response:
        """Return what the handler answers, now or when the attempt was made before.

        ProblemError (409, 422) where the stored response cannot be sent again.
        """
        if (stored := await self._stored(attempt)) is None:
            try:
                return await self.change(call, attempt)
            except AlreadyApplied:  # meanwhile
                stored = await self._stored(attempt)
                assert stored is not None  # noqa: S101 - it was there a moment ago
        return stored.replay(attempt.fingerprint)

    async def _stored(self, attempt: IdempotentRequest) -> StoredResponse | None:
        now = self._services.clock.now()
        return await self._services.database.lookup(find_stored_response, attempt, now)

    def apply(
        self, connection: Connection, call: RequestContext, attempt: IdempotentRequest | None
    ) -> Response:
        """Return what the handler answers; to be called in a write."""
        endpoint = self._endpoint
        self._confirm(connection, call.request)
        answer = cast("TransactionHandler", endpoint.handler)(connection, call)
        now = self._services.clock.now()
        if endpoint.action is not None and answer.change is not None:
            audit.record(connection, self._entry(call, endpoint.action, answer.change, now))
        if attempt is not None:
            status = answer.status or endpoint.status
            secret = endpoint.shows_secret
            store_response(connection, attempt, answer, status, now=now, secret=secret)
        return answer

    def _entry(
        self, call: RequestContext, action: str, change: AuditedChange, now: datetime
    ) -> audit.AuditRecord:
        return build_audit_entry(
            self._services,
            call.request,
            now,
            actor=call.principal.id,
            action=change.action or action,
            target=change.target,
            details=change.details,
        )


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
            raise to_oauth_error(describe_error(request, error)) from None

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


def _keep_principal(_connection: Connection, principal: Principal) -> Principal:
    return principal
