"""The API as an aiohttp application."""

from __future__ import annotations

import re
import secrets
from collections import defaultdict

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from structlog.contextvars import bind_contextvars

from tocsin.web.authentication import RATE_LIMIT_FIELDS, AccessControl
from tocsin.web.console import RenderMissing, add_console
from tocsin.web.context import ApiServices
from tocsin.web.dispatch import make_handler
from tocsin.web.endpoints import ENDPOINTS, NODE_ENDPOINTS
from tocsin.web.problems import BODY_LIMIT, problem_response
from tocsin.web.rate_limits import address_key
from tocsin.web.responses import REQUEST_ID, REQUEST_ID_KEY, ResponseHeaders

_WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{1,128}")
_REFUSED = {401: "credential refused", 403: "not permitted", 429: "too many requests"}

HEADERS = web.AppKey("headers", ResponseHeaders)
"""Where an application keeps what completes its answers."""


def make_app(services: ApiServices, *, has_api: bool = True) -> web.Application:
    """Return the application; whoever runs it closes what is in `services`.

    Without the API, it answers what is asked of every node alone: how it is.
    """
    https = services.public_url.startswith("https://")
    headers = ResponseHeaders(https=https, cors_origins=services.cors_origins)
    app = web.Application(client_max_size=BODY_LIMIT)
    app[HEADERS] = headers
    gate = AccessControl(services)
    methods: dict[str, set[str]] = defaultdict(lambda: {"OPTIONS"})
    for endpoint in ENDPOINTS if has_api else NODE_ENDPOINTS:
        handler = make_handler(endpoint, services, gate)
        methods[endpoint.path].add(endpoint.method)
        app.router.add_route(endpoint.method, endpoint.path, handler)
        if endpoint.method == "GET":
            methods[endpoint.path].add("HEAD")
            app.router.add_route("HEAD", endpoint.path, handler)
    render_missing = add_console(app, services, gate) if has_api else None
    app.middlewares.append(_make_envelope(services, headers, render_missing))
    for path, taken in methods.items():
        app.router.add_route("OPTIONS", path, _make_options_handler(headers, taken))
    return app


def _make_options_handler(headers: ResponseHeaders, methods: set[str]) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        return headers.options(request, methods)

    return handle


def read_request_id(request: web.BaseRequest) -> str:
    """Return the request's own id, if it is well formed, else a new one."""
    request_id = request.headers.get(REQUEST_ID, "")
    return request_id if _WELL_FORMED.fullmatch(request_id) else secrets.token_hex(16)


def _make_envelope(
    services: ApiServices, headers: ResponseHeaders, render_missing: RenderMissing | None
) -> Middleware:
    @web.middleware
    async def envelope(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Give every answer its request id, and every error the form of a problem document."""
        request_id = request[REQUEST_ID_KEY] = read_request_id(request)
        bind_contextvars(request_id=request_id)
        try:
            response = await handler(request)
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets an answer
            page = await render_missing(request, error) if render_missing else None
            response = page or problem_response(request, error)
            if response.status in _REFUSED:
                address = services.addresses.of(request)
                services.refusals.count(address_key(address), _REFUSED[response.status])
        if RATE_LIMIT_FIELDS in request:
            response.headers.update(request[RATE_LIMIT_FIELDS])
        headers.complete(request, response, request_id)
        return response

    return envelope
