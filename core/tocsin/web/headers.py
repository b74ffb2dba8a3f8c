"""The header fields of every answer, and what pages of other origins may do (CORS)."""

from __future__ import annotations

from collections.abc import Collection

from aiohttp import hdrs, web

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
