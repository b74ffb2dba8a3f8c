"""HTTP server that reports malformed and oversized requests as problem documents."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Coroutine
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import ContentEncodingError, HttpProcessingError, LineTooLong
from aiohttp.web_protocol import RequestHandler

from tocsin.web.app import DIRECT_READS, HEADERS
from tocsin.web.bounded_parser import MAX_HEADER, BoundedParser, HeaderTooLong
from tocsin.web.envelope import read_request_id
from tocsin.web.problems import ProblemError, problem_response
from tocsin.web.request_problems import UNSUPPORTED_ENCODING

# The parser identifies the line that was too long only by its limit, so these two differ
_LONGEST_URL = 8000  # RFC 9112 section 3 asks for at least so much
_LONGEST_FIELD = 8190
_MOST_FIELDS = 64
_TOO_MANY_FIELDS = "Too many headers received"
_KEEPALIVE_SECONDS = 75
_FINISHING_SECONDS = 10  # for requests that run when the node stops
_READ_SIZE = 32 * 1024
"""How many bytes to read at once; each connection whose body nobody reads holds this many."""
_SENDING_SECONDS = 60
"""How many seconds a client has to read a response before its connection is closed."""
_MOST_CONNECTIONS = 2_000
_MOST_FILES = 8_192


def limit_connections() -> int:
    """Return the maximum number of connections: half of the files that the process may open.

    The other half is for the database, SIEMs and receivers. The process may open more files
    after this call, if the system allows it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    files = _MOST_FILES if soft == resource.RLIM_INFINITY else soft
    return min(files // 2, _MOST_CONNECTIONS)


class ApiRunner(web.AppRunner):
    """Runs the application; requests that cannot be parsed never reach it."""

    def __init__(self, app: web.Application, *, connections: int = _MOST_CONNECTIONS) -> None:
        self._most_connections = connections
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
        return _Server(self.app, server, self._most_connections)


class _Server(web.Server):
    """aiohttp's server, with Tocsin's connection class and direct reads."""

    def __init__(self, app: web.Application, server: web.Server, connections: int) -> None:
        handler = app[DIRECT_READS].precede(server.request_handler)
        super().__init__(handler, request_factory=server.request_factory, **server._kwargs)  # noqa: SLF001
        self.headers = app[HEADERS]
        self._most_connections = connections
        self._buffer = memoryview(bytearray(_READ_SIZE))

    def __call__(self) -> _ConnectionReader:  # type: ignore[override]  # a protocol for `create_server`
        return _ConnectionReader(_Connection(self, loop=self._loop, **self._kwargs), self._buffer)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Add a connection; over the limit, close the oldest one that waits for a request."""
        super().connection_made(handler, transport)
        if len(self._connections) > self._most_connections:
            waiting = (one for one in self._connections if one._waiter is not None)  # noqa: SLF001
            self._connections.pop(next(waiting, handler)).abort()


class _ConnectionReader(asyncio.BufferedProtocol):
    """Reads up to 32 KiB at once for a connection; the event loops would read 256 KiB.

    All connections share one buffer, because a loop fills it and hands it over in one step.
    """

    __slots__ = ("_buffer", "_connection")

    def __init__(self, connection: _Connection, buffer: memoryview) -> None:
        self._connection = connection
        self._buffer = buffer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the connection."""
        self._connection.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the connection."""
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait until the client has read the data sent so far."""
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        """Continue after the client has read the data sent so far."""
        self._connection.resume_writing()

    def eof_received(self) -> None:
        """Let the transport close, as aiohttp does."""
        self._connection.eof_received()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - all that fits
        """Return the buffer to read into."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Pass the received bytes to the connection."""
        self._connection.data_received(bytes(self._buffer[:nbytes]))


class _Connection(RequestHandler):
    """A connection with error responses of its own; aiohttp's would show the request."""

    __slots__ = ("_deadline",)

    def __init__(self, manager: web.Server, **options: Any) -> None:
        super().__init__(manager, **options)
        self._parser = BoundedParser(self._parser, self)  # type: ignore[assignment]
        self._deadline: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        """Wait until the client has read the data; close the connection if it takes too long."""
        super().pause_writing()
        if self.transport is not None:
            self._deadline = self._loop.call_later(_SENDING_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Continue after the client has read the data sent so far."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().resume_writing()

    async def start(self) -> None:
        """Handle requests, and then give the client some time to read the last response."""
        transport = self.transport
        try:
            await super().start()
        finally:
            if transport is not None and transport.get_write_buffer_size():
                self._loop.call_later(_SENDING_SECONDS, transport.abort)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - it shows what was sent
    ) -> web.StreamResponse:
        """Return the response to a request that never reached the application, then disconnect."""
        if request.writer.output_size > 0:
            raise ConnectionError("the response has already started")
        response = self._complete(request, _reject(request, status, exc))
        response.force_close()
        return response

    def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> Coroutine[Any, Any, tuple[web.StreamResponse, bool]]:
        """Send the response, as a problem if aiohttp itself rejects the request (`Expect`).

        The end of an unreadable body is unknown, so the response says that it is the last one.
        """
        if isinstance(resp, Exception):
            resp = self._complete(request, problem_response(request, resp))
        if request.content.exception() is not None:
            resp.force_close()
        return super().finish_response(request, resp, start_time)

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Log an error, unless it is an unreadable body, which is the sender's error."""
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
        case HeaderTooLong():
            problem = ProblemError(431, f"A header can have at most {MAX_HEADER} bytes.")
        case LineTooLong():
            problem = ProblemError(431, f"A header field can have at most {_LONGEST_FIELD} bytes.")
        case HttpProcessingError(message=message) if message == _TOO_MANY_FIELDS:
            problem = ProblemError(431, f"A request can have at most {_MOST_FIELDS} header fields.")
        case ContentEncodingError():
            problem = UNSUPPORTED_ENCODING.error()
        case HttpProcessingError():
            problem = ProblemError(status, "This is not a well-formed HTTP request.")
        case Exception():
            return problem_response(request, error)
        case _:
            problem = ProblemError(status, HTTPStatus(status).phrase)
    return problem_response(request, problem)
