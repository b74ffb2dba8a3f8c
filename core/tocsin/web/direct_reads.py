"""Reads for which one statement fetches both the version of the caller's key and the response.

These are the usual requests: with an API key that was verified before, without unusual header
fields, and for documents that are up to date. The response is sent as bytes before the request
reaches the application. Any other request, and any refusal, is left to the application, whose
general handler reads again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from email.utils import formatdate
from functools import lru_cache
from typing import Any, NamedTuple

import structlog
from aiohttp import HttpVersion11, hdrs, web
from aiohttp.abc import AbstractStreamWriter
from multidict import istr

from tocsin import tracing
from tocsin.credentials import FIND_KEY, PresentedKey, Principal
from tocsin.web.authentication import API_KEY_HEADER
from tocsin.web.context import (
    REQUEST_ID,
    ApiServices,
    DirectQuery,
    DirectRequest,
    Endpoint,
)
from tocsin.web.envelope import HostCheck, read_request_id
from tocsin.web.etags import CACHE_CONTROL, is_held
from tocsin.web.known_pages import DirectAnswer
from tocsin.web.problems import ProblemError

Handler = Callable[[Any], Awaitable[web.StreamResponse]]
_ACCEPTED: tuple[list[str], ...] = ([], ["*/*"], ["application/json"])
_API_KEY = istr(API_KEY_HEADER)
_PARAMETER = "[A-Za-z0-9]{1,64}"
_QUERY = "[A-Za-z0-9_.~%&=+:-]{0,200}"
_FOUND = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_HELD = "HTTP/1.1 304 Not Modified\r\n"


class _Route(NamedTuple):
    """An endpoint, and the request targets that it matches."""

    match: Callable[[str], re.Match[str] | None]
    endpoint: Endpoint
    fetch: Callable[[DirectRequest, ApiServices], DirectQuery | None]


class DirectReads:
    """Answers the usual requests to endpoints that have a direct query."""

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        services: ApiServices,
        hosts: HostCheck,
        fields: Mapping[str, str],
    ) -> None:
        """`fields` are the header fields of every response."""
        self._services = services
        self._keys = services.key_rows
        self._hosts = hosts
        self._has_origins = bool(services.cors_origins)
        self._fields = _render_fields({**fields, hdrs.CACHE_CONTROL: CACHE_CONTROL})
        self._log = structlog.get_logger().bind()
        self._routes = [
            _Route(_compile_path(endpoint.path), endpoint, endpoint.direct)
            for endpoint in endpoints
            if endpoint.direct is not None
        ]

    def precede(self, handle: Handler) -> Handler:
        """Return a handler that passes all other requests to `handle`."""
        if tracing.is_on():  # the application records the spans
            return handle

        async def answer_or_handle(request: web.Request) -> web.StreamResponse:
            response = await self._answer(request)
            return await handle(request) if response is None else response

        return answer_or_handle

    async def _answer(self, request: web.Request) -> web.StreamResponse | None:
        """Return the response; None if the application must handle the request."""
        planned = self._plan(request)
        if planned is None:
            return None
        key, endpoint, first = planned
        wanted: DirectQuery | None = first
        while wanted is not None:
            values = key.key_id, *wanted.values
            row = await self._services.database.fetch_row(wanted.query, values)
            if row is None:
                return None
            now = self._services.clock.now()
            principal = self._keys.identify(key, row[0], now) or await self._prove(key)
            if principal is None or endpoint.access not in principal.scopes:
                return None
            answer = wanted.render(row[1:])
            if answer is not None:
                return self._respond(request, endpoint, answer, principal)
            wanted = wanted.otherwise
        return None

    async def _prove(self, key: PresentedKey) -> Principal | None:
        """Return the caller of a key whose row has a version that was not proven before."""
        row = await self._services.database.fetch_row(FIND_KEY, (key.key_id,))
        return None if row is None else self._keys.prove(key, row, self._services.clock.now())

    def _plan(self, request: web.Request) -> tuple[PresentedKey, Endpoint, DirectQuery] | None:
        """Return the key of the caller, and the query of the endpoint."""
        target = request.raw_path
        for route in self._routes:
            if found := route.match(target):
                key = self._find_key(request)
                parts = DirectRequest(target, *found.groups(""))
                wanted = None if key is None else route.fetch(parts, self._services)
                return None if key is None or wanted is None else (key, route.endpoint, wanted)
        return None

    def _find_key(self, request: web.Request) -> PresentedKey | None:
        """Return the key in the request; None if the request is not a usual one."""
        headers = request.headers
        is_usual = (
            request.method == hdrs.METH_GET
            and request.version == HttpVersion11
            and request.keep_alive
            and not request.body_exists
            and headers.getall(hdrs.ACCEPT, []) in _ACCEPTED
            and hdrs.AUTHORIZATION not in headers
            and hdrs.CONTENT_TYPE not in headers
            and hdrs.EXPECT not in headers
            and not (self._has_origins and hdrs.ORIGIN in headers)
        )
        hosts, keys = headers.getall(hdrs.HOST, ()), headers.getall(_API_KEY, ())
        if not is_usual or len(hosts) != 1 or len(keys) != 1 or not self._hosts.is_ours(hosts[0]):
            return None
        return self._keys.present(keys[0])

    def _respond(
        self,
        request: web.Request,
        endpoint: Endpoint,
        answer: DirectAnswer,
        principal: Principal,
    ) -> web.StreamResponse | None:
        try:
            limits = self._services.rate_limits.count_request(principal.id)
        except ProblemError:
            return None
        tag, request_id = self._services.tags.make(answer.version), read_request_id(request)
        fields = (
            f"{self._fields}{_render_date(int(time.time()))}ETag: {tag}\r\n"
            f"{REQUEST_ID}: {request_id}\r\n"
            f"{_render_fields(limits)}{_render_fields(answer.headers)}"
        )
        if is_held(request, tag):
            status, rendered = 304, f"{_HELD}{fields}\r\n".encode()
        else:
            size = len(answer.content)
            head = f"{_FOUND}Content-Length: {size}\r\n{fields}\r\n".encode()
            status, rendered = 200, head + answer.content
        self._log.debug(
            "request served",
            method=hdrs.METH_GET,
            path=endpoint.path,
            status=status,
            request_id=request_id,
        )
        return _RenderedResponse(rendered)


class _RenderedResponse(web.StreamResponse):
    """A response on a persistent connection, already rendered with its header.

    It has only the attributes that the server uses, not the state that aiohttp needs for rendering.
    """

    keep_alive = True

    def __init__(self, rendered: bytes) -> None:
        self._rendered = rendered

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter:
        """Send the whole response."""
        await request.writer.write(self._rendered)
        return request.writer

    async def write_eof(self, data: bytes = b"") -> None:
        """Do nothing, because `prepare` has already sent everything."""


def _compile_path(path: str) -> Callable[[str], re.Match[str] | None]:
    """Return a function that matches a path with at most one parameter, plus any plain query."""
    before, brace, rest = path.partition("{")
    parameter = _PARAMETER if brace else ""
    after = re.escape(rest.partition("}")[2])
    return re.compile(rf"{re.escape(before)}({parameter}){after}(?:\?({_QUERY}))?").fullmatch


def _render_fields(fields: Mapping[str, str]) -> str:
    """Return header fields as text.

    All values are safe: they come from Tocsin, or are a well-formed request ID or a link's encoded
    query.
    """
    text = ""
    for name, value in fields.items():
        text += f"{name}: {value}\r\n"
    return text


@lru_cache(maxsize=1)
def _render_date(second: int) -> str:
    return f"Date: {formatdate(second, usegmt=True)}\r\n"
