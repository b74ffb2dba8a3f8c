"""Dispatch of requests to endpoint handlers: admission, parsing, transaction, audit entry."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime
from inspect import iscoroutinefunction
from typing import cast

import orjson
from aiohttp import hdrs, web
from sqlalchemy import Connection

from tocsin import audit
from tocsin.credentials import Principal
from tocsin.model import Json
from tocsin.store import Freshness, ReadReplica, load_freshness, mark_write
from tocsin.web.authentication import AccessControl
from tocsin.web.context import (
    REPLICA_LAG,
    REQUEST_ID_KEY,
    AccessRole,
    ApiServices,
    AsyncHandler,
    Endpoint,
    RequestContext,
    Response,
    TransactionHandler,
)
from tocsin.web.etags import apply_etag, hash_content
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
from tocsin.web.parsing import parse_body, parse_query
from tocsin.web.request_problems import NOT_ACCEPTABLE

HttpHandler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ConfirmAccess = Callable[[Connection, web.Request], object]
"""Raises an error if the caller has lost access since it was admitted."""

NOBODY = Principal("", "")


def make_handler(
    endpoint: Endpoint, services: ApiServices, access_control: AccessControl
) -> HttpHandler:
    """Return the aiohttp handler of an endpoint."""
    if iscoroutinefunction(endpoint.handler):
        return _AsyncEndpoint(endpoint, services, access_control).handle
    if endpoint.method != "GET":
        return MutationEndpoint(endpoint, services, access_control).handle
    return _ReadEndpoint(endpoint, services, access_control).handle


class _EndpointHandler:
    """Base class for endpoint handlers: builds the request context and renders the response."""

    def __init__(
        self, endpoint: Endpoint, services: ApiServices, access_control: AccessControl
    ) -> None:
        self._endpoint = endpoint
        self._services = services
        self._access_control = access_control

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return the response to a request."""
        raise NotImplementedError

    def _build_context(self, request: web.Request, principal: Principal) -> RequestContext:
        endpoint = self._endpoint
        path = request.match_info
        if not all(part.isprintable() for part in path.values()):
            raise web.HTTPNotFound
        _require_acceptable(request, endpoint.media_type)
        query = parse_query(request.rel_url, endpoint.query)
        return RequestContext(
            services=self._services, principal=principal, request=request, path=path, query=query
        )

    def _render(self, request: web.Request, answer: Response) -> web.Response:
        content, media_type = answer.content, self._endpoint.media_type
        response = web.Response(
            body=content if isinstance(content, bytes) else orjson.dumps(content),
            status=answer.status or self._endpoint.status,
            headers=answer.headers,
            content_type=media_type,
            charset="utf-8" if media_type.startswith("text/") else None,
        )
        if self._endpoint.method == "GET" and response.status == self._endpoint.status:
            return apply_etag(request, response, self._make_tag(answer, response))
        return response

    def _make_tag(self, answer: Response, response: web.Response) -> str:
        if answer.version is not None:
            return self._services.tags.make(answer.version)
        assert isinstance(response.body, bytes)  # noqa: S101 - every handler sets a body
        return hash_content(response.body)


class _ReadEndpoint(_EndpointHandler):
    """Endpoint that reads its data in the same database access that identifies the caller."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return what the handler has read."""
        serve = cast("TransactionHandler", self._endpoint.handler)

        def work(connection: Connection, principal: Principal) -> web.Response:
            context = self._build_context(request, principal)
            return self._render(request, serve(connection, context))

        endpoint, replica = self._endpoint, self._services.replica
        if replica is not None and endpoint.may_lag:
            return await self._read_replica(replica, request)
        return await self._access_control.admit(
            request, endpoint.access, work, is_brief=endpoint.is_brief
        )

    async def _read_replica(self, replica: ReadReplica, request: web.Request) -> web.Response:
        """Return what the handler reads from the replica; the primary identifies the caller."""
        serve = cast("TransactionHandler", self._endpoint.handler)
        principal, freshness = await self._access_control.admit(
            request, self._endpoint.access, _load_freshness
        )
        call = self._build_context(request, principal)
        answer, age = await replica.read(freshness, lambda connection: serve(connection, call))
        response = self._render(request, answer)
        if age is not None:
            response.headers[REPLICA_LAG] = f"{age:.1f}"
        return response


def _load_freshness(connection: Connection, principal: Principal) -> tuple[Principal, Freshness]:
    return principal, load_freshness(connection, principal.id)


class _AsyncEndpoint(_EndpointHandler):
    """Endpoint with a coroutine that uses the database itself."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return the handler's response."""
        serve = cast("AsyncHandler", self._endpoint.handler)
        principal, access = NOBODY, self._endpoint.access
        if access not in {AccessRole.PUBLIC, AccessRole.SENDER, AccessRole.WEBHOOK}:
            principal = await self._access_control.admit(request, access, keep_principal)
        return self._render(request, await serve(self._build_context(request, principal)))


class MutationEndpoint(_EndpointHandler):
    """Endpoint that writes in one transaction with the audit entry and the stored response."""

    def __init__(
        self, endpoint: Endpoint, services: ApiServices, access_control: AccessControl
    ) -> None:
        super().__init__(endpoint, services, access_control)
        self._in_flight = InFlightRequests()
        self._mutation = MutationHandler(endpoint, services, self._confirm)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return the response of the handler, or the stored response for the idempotency key."""
        endpoint = self._endpoint
        principal = await self._access_control.admit(request, endpoint.access, keep_principal)
        key = read_idempotency_key(request) if endpoint.idempotent else None
        call = self._build_context(request, principal)
        if endpoint.body is not None:
            body = await parse_body(request, endpoint.body, required=endpoint.body_required)
            call = replace(call, body=body)
        if key is None:
            return self._render(request, await self._mutation.change(call))
        attempt = IdempotentRequest(principal.id, key, compute_fingerprint(request, call.body))
        with self._in_flight.hold(attempt):
            return self._render(request, await self._mutation.change_once(call, attempt))

    def _confirm(self, connection: Connection, request: web.Request) -> None:
        self._access_control.confirm(connection, request, self._endpoint.access)


def keep_principal(_connection: Connection, principal: Principal) -> Principal:
    """Return the principal; use it as `work` when a request only needs to be identified."""
    return principal


class MutationHandler:
    """Runs the handler of a writing endpoint for an admitted caller."""

    def __init__(self, endpoint: Endpoint, services: ApiServices, confirm: ConfirmAccess) -> None:
        self._endpoint = endpoint
        self._services = services
        self._confirm = confirm

    async def change(
        self, call: RequestContext, attempt: IdempotentRequest | None = None
    ) -> Response:
        """Return the handler's response after the commit.

        With an `attempt`, also store the response; raises AlreadyApplied if a response to this
        attempt is already stored.
        """
        if self._endpoint.prepare is not None:
            call = replace(call, prepared=await self._endpoint.prepare(call))
        try:
            answer = await self._services.database.write(self.apply, call, attempt)
        finally:
            self._services.shared_results.expire()
        if answer.after_commit is not None:
            answer.after_commit()
        return answer

    async def change_once(self, call: RequestContext, attempt: IdempotentRequest) -> Response:
        """Return the handler's response, or the stored response to an earlier request.

        Raises ProblemError (409, 422) if the stored response cannot be sent again.
        """
        if (stored := await self._find_stored(attempt)) is None:
            try:
                return await self.change(call, attempt)
            except AlreadyApplied:  # by a concurrent request
                stored = await self._find_stored(attempt)
                assert stored is not None  # noqa: S101 - it was stored a moment ago
        return stored.replay(attempt.fingerprint)

    async def _find_stored(self, attempt: IdempotentRequest) -> StoredResponse | None:
        now = self._services.clock.now()
        return await self._services.database.lookup(find_stored_response, attempt, now)

    def apply(
        self, connection: Connection, call: RequestContext, attempt: IdempotentRequest | None
    ) -> Response:
        """Return the handler's response; call it in a write transaction."""
        endpoint = self._endpoint
        self._confirm(connection, call.request)
        answer = cast("TransactionHandler", endpoint.handler)(connection, call)
        now = self._services.clock.now()
        if endpoint.action is not None:
            for change in answer.changes:
                entry = build_audit_entry(
                    self._services,
                    call.request,
                    now,
                    actor=call.principal.id,
                    action=change.action or endpoint.action,
                    target=change.target,
                    details=change.details,
                )
                audit.record(connection, entry)
        if attempt is not None:
            status = answer.status or endpoint.status
            secret = endpoint.shows_secret
            store_response(connection, attempt, answer, status, now=now, secret=secret)
        if self._services.replica is not None:
            mark_write(connection, call.principal.id)
        return answer


def record_action(connection: Connection, services: ApiServices, entry: audit.AuditRecord) -> None:
    """Store an audit entry as a transaction's last step, so that its actor sees it on replicas."""
    audit.record(connection, entry)
    if services.replica is not None:
        mark_write(connection, entry.actor)


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
    """Return the audit entry of a request, with its address and its ID."""
    return audit.AuditRecord(
        at=at,
        actor=actor,
        action=action,
        target=target,
        address=services.addresses.find(request),
        request_id=request[REQUEST_ID_KEY],
        details=details,
    )


def _require_acceptable(request: web.Request, media_type: str) -> None:
    """Raise ProblemError (406) unless the caller accepts this media type.

    RFC 9110 section 12.5.1: the most specific range of `Accept` decides; without `Accept`, any
    type is accepted.
    """
    accept = ",".join(request.headers.getall(hdrs.ACCEPT, ["*/*"]))
    if accept in {"", "*/*"}:
        return
    kind = media_type.partition("/")[0]
    ranges = dict(map(_parse_media_range, accept.split(",")))
    for wanted in (media_type, f"{kind}/*", "*/*"):
        if wanted in ranges:
            if ranges[wanted] > 0:
                return
            break
    raise NOT_ACCEPTABLE.error(media_type=media_type)


_QUALITY = re.compile(r";\s*q=([01](?:\.[0-9]{0,3})?)", re.IGNORECASE)


def _parse_media_range(text: str) -> tuple[str, float]:
    """Return a media range and its quality."""
    quality = _QUALITY.search(text)
    return text.partition(";")[0].strip().lower(), float(quality[1]) if quality else 1
