"""HTTP server that reports malformed and oversized requests as problem documents."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong
from aiohttp.web_protocol import RequestHandler

from tocsin.web.app import HEADERS, ResponseHeaders, read_request_id
from tocsin.web.problems import ProblemError, problem_response

# The parser identifies the line that was too long only by its limit, so these two differ
_LONGEST_URL = 8000  # RFC 9112 section 3 asks for at least so much
_LONGEST_FIELD = 8190
_MOST_FIELDS = 64
_TOO_MANY_FIELDS = "Too many headers received"
_KEEPALIVE_SECONDS = 75
_FINISHING_SECONDS = 10  # for requests that run when the node stops
_READ_SIZE = 32 * 1024
"""Bytes to read at once: many connections with bodies that nobody reads take this each."""


class ApiRunner(web.AppRunner):
    """Runs the application; requests that cannot be parsed never reach it."""

    def __init__(self, app: web.Application) -> None:
        super().__init__(
            app,
            access_log=None,
            max_line_size=_LONGEST_URL,
            max_field_size=_LONGEST_FIELD,
            max_headers=_MOST_FIELDS,
            read_bufsize=_READ_SIZE,
            keepalive_timeout=_KEEPALIVE_SECONDS,
            shutdown_timeout=_FINISHING_SECONDS,
        )

    async def _make_server(self) -> web.Server:
        server = await super()._make_server()
        return _Server(self.app[HEADERS], server)


class _Server(web.Server):
    """The server of aiohttp with connections of our own."""

    def __init__(self, headers: ResponseHeaders, server: web.Server) -> None:
        factory = server.request_factory
        super().__init__(server.request_handler, request_factory=factory, **server._kwargs)  # noqa: SLF001
        self.headers = headers

    def __call__(self) -> RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(RequestHandler):
    """One connection; the error pages of aiohttp would show the request."""

    __slots__ = ()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the connection, which reads little at once; asyncio would read 256 KiB."""
        transport.max_size = _READ_SIZE  # type: ignore[attr-defined]  # see test_upstream_internals
        super().connection_made(transport)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it shows what was sent
    ) -> web.StreamResponse:
        """Return the response to a request that never reached the application, and close."""
        if request.writer.output_size > 0:
            raise ConnectionError("the response has already started")
        response = self._complete(request, _reject(request, status, exc))
        response.force_close()
        return response

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send the response; what aiohttp rejects itself, such as `Expect`, is a problem too."""
        if isinstance(resp, web.HTTPException):
            resp = self._complete(request, problem_response(request, resp))
        return await super().finish_response(request, resp, start_time)

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log an error of the service; an unreadable body is the error of its sender."""
        if not isinstance(kw.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **kw)

    def _complete(self, request: web.BaseRequest, response: web.Response) -> web.Response:
        assert isinstance(self._manager, _Server)  # noqa: S101 - whose connection this is
        self._manager.headers.complete(request, response, read_request_id(request))
        return response


def _reject(request: web.BaseRequest, status: int, error: BaseException | None) -> web.Response:
    match error:
        case LineTooLong() if error.args[1] == _LONGEST_URL:
            problem = ProblemError(414, f"A URL can have at most {_LONGEST_URL} bytes.")
        case LineTooLong():
            problem = ProblemError(431, f"A header field can have at most {_LONGEST_FIELD} bytes.")
        case HttpProcessingError(message=message) if message == _TOO_MANY_FIELDS:
            problem = ProblemError(431, f"A request can have at most {_MOST_FIELDS} header fields.")
        case HttpProcessingError():
            problem = ProblemError(status, "This is not a well-formed HTTP request.")
        case Exception():
            return problem_response(request, error)
        case _:
            problem = ProblemError(status, HTTPStatus(status).phrase)
    return problem_response(request, problem)
