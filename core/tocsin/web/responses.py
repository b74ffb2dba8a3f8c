"""Header fields of every response: security, CORS, request ids, entity tags."""

from __future__ import annotations

import re
from collections.abc import Collection
from hashlib import blake2b

from aiohttp import hdrs, web

_TAG = re.compile(r'(?:W/)?("[^"]*")')


def apply_etag(request: web.Request, response: web.Response) -> web.Response:
    """Return the response under a tag that tells its body, or 304 where the caller holds that."""
    assert isinstance(response.body, bytes)  # noqa: S101 - what every handler here answers
    tag = f'"{blake2b(response.body, digest_size=16).hexdigest()}"'
    response.headers[hdrs.ETAG] = tag
    response.headers.setdefault(hdrs.CACHE_CONTROL, "private, no-cache")
    if not _is_cached(request, tag):
        return response
    headers = response.headers.copy()
    for name in (hdrs.CONTENT_TYPE, hdrs.CONTENT_LENGTH):
        headers.popall(name, None)
    return web.Response(status=304, headers=headers)


def _is_cached(request: web.Request, tag: str) -> bool:
    held = ",".join(request.headers.getall(hdrs.IF_NONE_MATCH, []))
    return held.strip() == "*" or tag in _TAG.findall(held)


REQUEST_ID = "X-Request-Id"
REQUEST_ID_KEY = web.RequestKey("request-id", str)
"""Where a request keeps its id."""

# Answers are data: nothing in them is to be run, framed or guessed at.
_ALWAYS = {
    "Server": "tocsin",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_POLICY = "default-src 'none'; frame-ancestors 'none'"
_YEAR = 31_536_000

_ALLOWED_FIELDS = (
    f"Authorization, Content-Type, Idempotency-Key, If-None-Match, X-API-Key, {REQUEST_ID}"
)
_EXPOSED_FIELDS = (
    f"ETag, Idempotency-Replayed, Link, RateLimit, RateLimit-Policy, Retry-After, {REQUEST_ID}"
)


class ResponseHeaders:
    """Completes the header of each answer."""

    def __init__(self, *, https: bool, cors_origins: Collection[str]) -> None:
        transport = {"Strict-Transport-Security": f"max-age={_YEAR}"} if https else {}
        self._always = tuple((_ALWAYS | transport).items())
        self._origins = frozenset(cors_origins)

    def complete(
        self, request: web.BaseRequest, response: web.StreamResponse, request_id: str
    ) -> None:
        """Add what every answer says."""
        headers = response.headers
        headers[REQUEST_ID] = request_id
        for name, value in self._always:
            headers[name] = value
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
        """Answer what the path takes, and to a page of an allowed origin, what it may send."""
        allowed = ", ".join(sorted(methods))
        headers = {hdrs.ALLOW: allowed}
        if request.headers.get(hdrs.ORIGIN) in self._origins:
            headers[hdrs.ACCESS_CONTROL_ALLOW_METHODS] = allowed
            headers[hdrs.ACCESS_CONTROL_ALLOW_HEADERS] = _ALLOWED_FIELDS
            headers[hdrs.ACCESS_CONTROL_MAX_AGE] = "600"
        return web.Response(status=204, headers=headers)
