"""The API as an aiohttp application."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any, cast

import orjson
from aiohttp import web
from sqlalchemy import Connection
from structlog.contextvars import bind_contextvars
from ulid import ULID

from tocsin.credentials import Principal
from tocsin.web.calls import Answer, Call, Endpoint, Reading, Role, Services, Writing
from tocsin.web.endpoints import ENDPOINTS
from tocsin.web.gate import Gate
from tocsin.web.parsing import parse_body, parse_query
from tocsin.web.problems import BODY_LIMIT, problem_response

REQUEST_ID = "X-Request-Id"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{1,128}")
_NOBODY = Principal("")
_LIMITS = {
    "max_line_size": 8190,
    "max_field_size": 8190,
    "max_headers": 64,
    "keepalive_timeout": 75,
}


def make_app(services: Services) -> web.Application:
    """Return the application; whoever runs it closes what is in `services`."""
    app = web.Application(middlewares=[_envelope], client_max_size=BODY_LIMIT, handler_args=_LIMITS)
    gate = Gate(services)
    for endpoint in ENDPOINTS:
        make = _writing if iscoroutinefunction(endpoint.handler) else _reading
        handler = make(endpoint, services, gate)
        resource = app.router.add_resource(endpoint.path)
        resource.add_route(endpoint.method, handler)
        if endpoint.method == "GET":
            resource.add_route("HEAD", handler)
    return app


@web.middleware
async def _envelope(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Give every answer its request id, and every error the form of a problem document."""
    request_id = request.headers.get(REQUEST_ID, "")
    if not _WELL_FORMED.fullmatch(request_id):
        request_id = str(ULID())
    bind_contextvars(request_id=request_id)
    try:
        response = await handler(request)
    except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets an answer
        response = problem_response(request, error)
    response.headers[REQUEST_ID] = request_id
    response.headers["Server"] = "tocsin"
    return response


def _reading(endpoint: Endpoint, services: Services, gate: Gate) -> Handler:
    """Return a handler whose work is done in the same read that identifies the caller."""
    read = cast("Reading", endpoint.handler)

    async def handle(request: web.Request) -> web.Response:
        def work(connection: Connection, principal: Principal) -> web.Response:
            return _respond(endpoint, read(connection, _call(request, principal)))

        return await gate.admit(request, endpoint.access, work)

    def _call(request: web.Request, principal: Principal) -> Call:
        return _make_call(endpoint, services, request, principal)

    return handle


def _writing(endpoint: Endpoint, services: Services, gate: Gate) -> Handler:
    """Return a handler that reads the body, and calls, only once the caller was let in."""
    write = cast("Writing", endpoint.handler)

    async def handle(request: web.Request) -> web.Response:
        principal = _NOBODY
        if endpoint.access is not Role.PUBLIC:
            principal = await gate.admit(request, endpoint.access, _itself)
        body = await parse_body(request, endpoint.body) if endpoint.body else None
        call = _make_call(endpoint, services, request, principal, body)
        return _respond(endpoint, await write(call))

    return handle


def _itself(_connection: Connection, principal: Principal) -> Principal:
    return principal


def _make_call(
    endpoint: Endpoint,
    services: Services,
    request: web.Request,
    principal: Principal,
    body: Any = None,
) -> Call:
    return Call(
        services=services,
        principal=principal,
        path=request.match_info,
        url=request.rel_url,
        query=parse_query(request.rel_url, endpoint.query),
        body=body,
    )


def _respond(endpoint: Endpoint, answer: Answer) -> web.Response:
    return web.Response(
        body=orjson.dumps(answer.content),
        status=answer.status or endpoint.status,
        headers=answer.headers,
        content_type="application/json",
    )
