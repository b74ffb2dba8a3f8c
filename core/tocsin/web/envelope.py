"""Envelope of every request and response: host check, request ID, header fields, errors."""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Callable, Collection, Mapping
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

from tocsin.web.authentication import RATE_LIMIT_FIELDS
from tocsin.web.client_addresses import address_key
from tocsin.web.console import RenderMissing
from tocsin.web.context import REPLICA_LAG, REQUEST_ID, REQUEST_ID_KEY, ApiServices
from tocsin.web.problems import ProblemError, problem_response
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
_CSP = "Content-Security-Policy"
_POLICY = "default-src 'none'; frame-ancestors 'none'"
_YEAR = 31_536_000

_ALLOWED_FIELDS = (
    "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-API-Key, "
    f"{REQUEST_ID}"
)
_EXPOSED_FIELDS = (
    f"ETag, Idempotency-Replayed, Link, RateLimit, RateLimit-Policy, Retry-After, {REPLICA_LAG}, "
    f"{REQUEST_ID}"
)

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{0,5})?")
"""A valid value of `Host`; a URL parser would accept more, such as credentials before a name."""
_LOCAL = "localhost"
_PROBES = frozenset({"/healthz", "/readyz"})
"""Paths that are available under any host name, because probes use the node's address."""
_SCRAPED = "/metrics"
"""The path that is available under any host name if a token protects it."""
UNTRACED = _PROBES | {_SCRAPED}
"""Paths whose requests are not recorded as spans."""
_MISDIRECTED = 421
_KNOWN_NAMES = 128
_LONGEST_TYPE = 256


class ResponseHeaders:
    """Header fields of every response, and CORS."""

    def __init__(self, *, https: bool, cors_origins: Collection[str]) -> None:
        transport = {"Strict-Transport-Security": f"max-age={_YEAR}"} if https else {}
        self._always = CIMultiDict(_ALWAYS | transport)
        self._origins = frozenset(cors_origins)

    @property
    def plain(self) -> Mapping[str, str]:
        """The fields of every response to a request without `Origin`, except the request ID."""
        fields = {**self._always, _CSP: _POLICY}
        return fields | {hdrs.VARY: hdrs.ORIGIN} if self._origins else fields

    def complete(
        self, request: web.BaseRequest, response: web.StreamResponse, request_id: str
    ) -> None:
        """Add the fields that every response has."""
        headers = response.headers
        headers[REQUEST_ID] = request_id
        headers.update(self._always)
        if _CSP not in headers:
            headers[_CSP] = _POLICY
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
        """Return the path's methods and, for an allowed origin, the CORS fields, as a response."""
        allowed = ", ".join(sorted(methods))
        headers = {hdrs.ALLOW: allowed}
        if request.headers.get(hdrs.ORIGIN) in self._origins:
            headers[hdrs.ACCESS_CONTROL_ALLOW_METHODS] = allowed
            headers[hdrs.ACCESS_CONTROL_ALLOW_HEADERS] = _ALLOWED_FIELDS
            headers[hdrs.ACCESS_CONTROL_MAX_AGE] = "600"
        return web.Response(status=204, headers=headers)


class HostCheck:
    """Accepts requests for the names in the URLs of this service, and for this machine.

    This prevents DNS rebinding: if another site's name resolved to this service, a browser would
    treat both as one site.
    """

    def __init__(self, *urls: str, has_metrics_token: Callable[[], bool]) -> None:
        self._url = urls[0]
        self._names = frozenset(_normalize(URL(url).raw_host or "") for url in urls)
        self._has_metrics_token = has_metrics_token
        self.is_ours = lru_cache(_KNOWN_NAMES)(self._has_our_name)
        """Returns whether a value of `Host` names this service; cached, as few values occur."""

    def require(self, request: web.Request) -> None:
        """Raise ProblemError (421, RFC 9110 section 15.5.20) if the request names another host."""
        if request.path in _PROBES or (request.path == _SCRAPED and self._has_metrics_token()):
            return
        named = request.headers.getall(hdrs.HOST, [])
        if len(named) == 1 and request.host != named[0]:  # the request target is a whole URL
            named.append(f"[{request.host}]" if ":" in request.host else request.host)
        if not named or not all(map(self.is_ours, named)):
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


def read_request_id(request: web.BaseRequest) -> str:
    """Return the ID that the caller chose, if it is well formed; otherwise a new one."""
    request_id = request.headers.get(REQUEST_ID, "")
    if request_id and _WELL_FORMED.fullmatch(request_id):
        return request_id
    return _random.randbytes(16).hex()


def make_envelope(
    services: ApiServices,
    hosts: HostCheck,
    headers: ResponseHeaders,
    render_missing: RenderMissing | None,
) -> Middleware:
    """Return the middleware that applies the envelope to every request of an application."""
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

    aiohttp parses it with an email parser, which takes quadratic time, or fails.
    """
    if len(request.headers.get(hdrs.CONTENT_TYPE, "")) > _LONGEST_TYPE:
        raise ProblemError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"Content-Type can have at most {_LONGEST_TYPE} characters.",
        )


def _log_request(log: Any, request: web.Request, response: web.StreamResponse) -> None:
    path = describe_path(request)
    log.debug("request served", method=request.method, path=path, status=response.status)


def describe_path(request: web.Request) -> str:
    """Return only the path's pattern, because the path or the query might contain a secret."""
    resource = request.match_info.route.resource
    return "unknown" if resource is None else resource.canonical
