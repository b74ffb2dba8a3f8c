"""The API as an aiohttp application."""

from __future__ import annotations

import random
import re
import secrets
from collections import defaultdict
from collections.abc import Callable, Collection
from functools import lru_cache
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any

import structlog
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware
from multidict import CIMultiDict
from structlog.contextvars import bind_contextvars
from yarl import URL

from tocsin import tracing
from tocsin.web.authentication import RATE_LIMIT_FIELDS, AccessControl
from tocsin.web.client_addresses import address_key
from tocsin.web.console import RenderMissing, add_console
from tocsin.web.context import REQUEST_ID, REQUEST_ID_KEY, AccessRole, ApiServices
from tocsin.web.dispatch import HttpHandler, make_handler
from tocsin.web.endpoints import ENDPOINTS, NODE_ENDPOINTS
from tocsin.web.oauth_endpoint import OAuthEndpoint
from tocsin.web.plugin_extensions import build_plugin_endpoints
from tocsin.web.problems import BODY_LIMIT, ProblemError, problem_response
from tocsin.web.refusals import REASONS

# Request ids are unique, not secret: the operating system's randomness would cost a system call
_random = random.Random(secrets.token_bytes(32))  # noqa: S311
_WELL_FORMED = re.compile(r"[A-Za-z0-9._-]{1,128}")

# Responses are data: nothing in them may be executed, framed or guessed
_ALWAYS = {
    "Server": "tocsin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_POLICY = "default-src 'none'; frame-ancestors 'none'"
_YEAR = 31_536_000

_ALLOWED_FIELDS = (
    "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-API-Key, "
    f"{REQUEST_ID}"
)
_EXPOSED_FIELDS = (
    f"ETag, Idempotency-Replayed, Link, RateLimit, RateLimit-Policy, Retry-After, {REQUEST_ID}"
)

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{0,5})?")
"""The value of `Host`: a URL parser would accept more, such as credentials before a name."""
_LOCAL = "localhost"
_PROBES = frozenset({"/healthz", "/readyz"})
"""Paths that answer under any name: probes use the address of the node."""
_SCRAPED = "/metrics"
_UNTRACED = _PROBES | {_SCRAPED}
"""The path that answers under any name if a token protects it."""
_MISDIRECTED = 421
_KNOWN_NAMES = 128
_LONGEST_TYPE = 256


class ResponseHeaders:
    """Header fields of every response, and CORS."""

    def __init__(self, *, https: bool, cors_origins: Collection[str]) -> None:
        transport = {"Strict-Transport-Security": f"max-age={_YEAR}"} if https else {}
        self._always = CIMultiDict(_ALWAYS | transport)
        self._origins = frozenset(cors_origins)

    def complete(
        self, request: web.BaseRequest, response: web.StreamResponse, request_id: str
    ) -> None:
        """Add the fields that every response has."""
        headers = response.headers
        headers[REQUEST_ID] = request_id
        headers.update(self._always)
        if "Content-Security-Policy" not in headers:
            headers["Content-Security-Policy"] = _POLICY
        if self._origins:
            self._allow_origin(request, response)

    def _allow_origin(self, request: web.BaseRequest, response: web.StreamResponse) -> None:
        response.headers.add(hdrs.VARY, hdrs.ORIGIN)
        origin = request.headers.get(hdrs.ORIGIN)
        if origin not in self._origins or origin is None:
            return
        response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
        response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = _EXPOSED_FIELDS
        response.headers["Cross-Origin-Resource-Policy"] = "cross-origin"

    def options(self, request: web.Request, methods: Collection[str]) -> web.Response:
        """Return the methods of a path, and for an allowed origin what it may send."""
        allowed = ", ".join(sorted(methods))
        headers = {hdrs.ALLOW: allowed}
        if request.headers.get(hdrs.ORIGIN) in self._origins:
            headers[hdrs.ACCESS_CONTROL_ALLOW_METHODS] = allowed
            headers[hdrs.ACCESS_CONTROL_ALLOW_HEADERS] = _ALLOWED_FIELDS
            headers[hdrs.ACCESS_CONTROL_MAX_AGE] = "600"
        return web.Response(status=204, headers=headers)


class HostCheck:
    """Accepts requests for the names in the URLs of this service, and for this machine.

    A browser that resolves the name of another site to this service (DNS rebinding) treats both as
    one site.
    """

    def __init__(self, *urls: str, has_metrics_token: Callable[[], bool]) -> None:
        self._url = urls[0]
        self._names = frozenset(_normalize(URL(url).raw_host or "") for url in urls)
        self._has_metrics_token = has_metrics_token
        # the same few names with every request
        self._is_ours = lru_cache(_KNOWN_NAMES)(self._has_our_name)

    def require(self, request: web.Request) -> None:
        """Raise ProblemError (421, RFC 9110 section 15.5.20) if the request names another host."""
        if request.path in _PROBES or (request.path == _SCRAPED and self._has_metrics_token()):
            return
        named = request.headers.getall(hdrs.HOST, [])
        if len(named) == 1 and request.host != named[0]:  # the request target is a whole URL
            named.append(f"[{request.host}]" if ":" in request.host else request.host)
        if not named or not all(map(self._is_ours, named)):
            raise ProblemError(
                _MISDIRECTED,
                f"The Host header must match {self._url}. Set TOCSIN_BASE_URL to the URL that "
                "callers use, and configure proxies to forward the header.",
            )

    def _has_our_name(self, named: str) -> bool:
        if not (found := _HOST.fullmatch(named)):
            return False
        name = _normalize(found[1])
        return name in self._names or name == _LOCAL or _is_loopback(name)


def _normalize(name: str) -> str:
    try:
        return ip_address(name.strip("[]")).compressed
    except ValueError:
        return name.casefold().removesuffix(".")


def _is_loopback(name: str) -> bool:
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


HEADERS = web.AppKey("headers", ResponseHeaders)
"""Key of an application's response headers."""


def make_app(services: ApiServices, *, has_api: bool = True) -> web.Application:
    """Return the application; the caller closes the services.

    Without the API, it only serves the health and the metrics of the node.
    """
    https = services.public_url.startswith("https://")
    headers = ResponseHeaders(https=https, cors_origins=services.cors_origins)
    app = web.Application(client_max_size=BODY_LIMIT)
    app[HEADERS] = headers
    access_control = AccessControl(services)
    handlers: dict[str, dict[str, HttpHandler]] = defaultdict(dict)
    inventory = services.inventory
    own = [one for name in inventory.routes for one in build_plugin_endpoints(inventory, name)]
    for endpoint in (*ENDPOINTS, *own) if has_api else NODE_ENDPOINTS:
        if endpoint.access is AccessRole.CLIENT:
            handler: HttpHandler = OAuthEndpoint(endpoint, services, access_control).handle
        else:
            handler = make_handler(endpoint, services, access_control)
        handlers[endpoint.path][endpoint.method] = handler
        if endpoint.method == "GET":
            handlers[endpoint.path]["HEAD"] = handler
    for path, by_method in handlers.items():
        resource = app.router.add_resource(path)
        for method, handler in by_method.items():
            resource.add_route(method, handler)
        allowed = {"OPTIONS", *by_method}
        resource.add_route("OPTIONS", _make_options_handler(headers, allowed))
    render_missing = add_console(app, services, access_control) if has_api else None
    if tracing.is_on():
        app.middlewares.append(_trace_request)
    app.middlewares.append(_make_envelope(services, headers, render_missing))
    return app


@web.middleware
async def _trace_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Record a span of a request, as part of the caller's trace, if there is one."""
    if request.path in _UNTRACED:
        return await handler(request)
    method = request.method if request.method in hdrs.METH_ALL else "_OTHER"
    route = _describe_path(request)
    facts = {"http.request.method": method, "http.route": route}
    parent = request.headers.get(tracing.TRACEPARENT)
    with tracing.span(f"{method} {route}", facts, kind="server", parent=parent) as traced:
        response = await handler(request)
        traced.set({"http.response.status_code": response.status})
        traced.set({"request_id": request[REQUEST_ID_KEY]})
    return response


def _make_options_handler(headers: ResponseHeaders, methods: set[str]) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        return headers.options(request, methods)

    return handle


def read_request_id(request: web.BaseRequest) -> str:
    """Return the ID that the request names if it is well formed, else a new one."""
    request_id = request.headers.get(REQUEST_ID, "")
    if request_id and _WELL_FORMED.fullmatch(request_id):
        return request_id
    return f"{_random.getrandbits(128):032x}"


def _make_envelope(
    services: ApiServices, headers: ResponseHeaders, render_missing: RenderMissing | None
) -> Middleware:
    hosts = HostCheck(
        services.public_url,
        services.issuer_url,
        has_metrics_token=lambda: services.metrics_token is not None,
    )

    log = structlog.get_logger().bind()  # a logger that is not bound is bound again for each line

    @web.middleware
    async def envelope(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Add the request ID to every response, and report every error as a problem document."""
        request_id = request[REQUEST_ID_KEY] = read_request_id(request)
        bind_contextvars(request_id=request_id)
        try:
            hosts.require(request)
            _require_short_type(request)
            response = await handler(request)
        except Exception as error:  # noqa: BLE001 - the caller gets a response to every error
            page = await render_missing(request, error) if render_missing else None
            response = page or problem_response(request, error)
            if response.status in REASONS:
                address = services.addresses.find(request)
                services.refusals.count(address_key(address), REASONS[response.status])
        _log_request(log, request, response)
        if RATE_LIMIT_FIELDS in request:
            response.headers.update(request[RATE_LIMIT_FIELDS])
        headers.complete(request, response, request_id)
        return response

    return envelope


def _require_short_type(request: web.Request) -> None:
    """Raise ProblemError (415) for a long media type.

    aiohttp parses it with the parser for mails, which takes the square of its length, or fails.
    """
    if len(request.headers.get(hdrs.CONTENT_TYPE, "")) > _LONGEST_TYPE:
        raise ProblemError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Content-Type can have at most {_LONGEST_TYPE} characters.",
        )


def _log_request(log: Any, request: web.Request, response: web.StreamResponse) -> None:
    path = _describe_path(request)
    log.debug("request served", method=request.method, path=path, status=response.status)


def _describe_path(request: web.Request) -> str:
    """Return the pattern of the path alone: callers may put a secret into a path or a query."""
    resource = request.match_info.route.resource
    return "unknown" if resource is None else resource.canonical
