"""Base of loopback simulators, for SIEMs and receivers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from inspect import isawaitable
from itertools import count
from typing import Any, ClassVar, Self

import orjson
from aiohttp import web

from tocsin.clock import Clock
from tocsin.testing.faults import REFUSALS, Fault, retry_after_header, spoil
from tocsin.testing.server import LoopbackServer

Handler = Callable[[web.Request], Awaitable[Any]]


class ErrorResponse(Exception):  # noqa: N818 - what the vendor answers, not a mistake of the simulator
    """An error response from a simulator; raise it in a request handler."""

    def __init__(self, status: int, reason: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = headers or {}


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request that the simulator received."""

    at: datetime
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


class VendorApi(ABC):
    """An API that records its requests, and fails on demand."""

    open_paths: ClassVar[tuple[str, ...]] = ()
    """Paths that do not require authentication, such as sign-in."""
    _reason: ClassVar[str] = "error"
    """The response member with the reason of an error."""

    def __init__(self, clock: Clock, *, port: int = 0) -> None:
        """Serve at a free port unless one is given."""
        self.clock = clock
        self.requests: list[RecordedRequest] = []
        """Every request, in order."""
        self.retry_after = timedelta(seconds=30)
        """The delay that throttling faults send."""
        self.refuses_faults = False
        """Whether faults with an HTTP status are sent by `refuse`; by default, as a proxy would."""
        self.mistakes: list[Exception] = []
        """Exceptions of its handlers, which are answered with 500."""
        self._numbers = count(1)
        app = web.Application(middlewares=[self._answer])
        app.add_routes(self.routes())
        self._server = LoopbackServer(app, port)

    @abstractmethod
    def routes(self) -> Sequence[web.RouteDef]:
        """Return the vendor's routes, whose handlers return `self.json(...)`."""

    @abstractmethod
    def is_signed(self, request: web.Request) -> bool | Awaitable[bool]:
        """Return whether a request has valid credentials.

        If the body contains the credentials, make this method a coroutine function.
        """

    def refuse(self, refusal: ErrorResponse) -> web.Response:
        """Return the error response that the vendor's API sends when it refuses a request or fails.

        By default, the response has the status, the reason as JSON and `refusal.headers`. Override
        this method if the API reports errors in another form, such as `200` with `{"error": ...}`.
        """
        response = self.json({self._reason: refusal.reason}, refusal.status)
        response.headers.update(refusal.headers)
        return response

    @staticmethod
    def json(content: Any, status: int = 200) -> web.Response:
        """Return a JSON response."""
        body = orjson.dumps(content)
        return web.Response(body=body, status=status, content_type="application/json")

    @property
    def url(self) -> str:
        """The address of the API, without a trailing slash."""
        return self._server.url

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.__aexit__()

    @abstractmethod
    def _select_fault(self, request: web.Request) -> Fault | None:
        """Return the fault of this request, None if there is none."""

    def _now(self) -> datetime:
        """Return the vendor's time."""
        return self.clock.now()

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        fault = self._select_fault(request)
        query, headers = dict(request.query), dict(request.headers)
        asked = RecordedRequest(
            self.clock.now(), request.method, request.path, query, headers, await request.read()
        )
        self.requests.append(asked)

        async def answer() -> web.Response:
            return await self._handle(request, handler)

        if fault is None:
            response: web.StreamResponse = await answer()
        elif self.refuses_faults and fault in REFUSALS:
            response = self.refuse(self._to_refusal(fault))
        else:
            response = await spoil(fault, request, answer, self._now(), self.retry_after)
        if not response.prepared:
            response.headers["Date"] = format_datetime(self._now(), usegmt=True)
        return response

    async def _handle(self, request: web.Request, handler: Handler) -> web.Response:
        try:
            await self._admit(request)
            response: web.Response = await handler(request)
        except ErrorResponse as refusal:
            response = self.refuse(refusal)
        except web.HTTPException as error:
            response = self.refuse(ErrorResponse(error.status, error.reason))
        except Exception as mistake:
            self.mistakes.append(mistake)
            raise
        return response

    async def _admit(self, request: web.Request) -> None:
        if request.path in self.open_paths:
            return
        signed = self.is_signed(request)
        if not (await signed if isawaitable(signed) else signed):
            raise ErrorResponse(401, "the session is unknown or expired")

    @property
    def sends_delays(self) -> bool:
        """Whether the simulator's responses to throttled requests contain Retry-After."""
        return "Retry-After" in self.refuse(self._to_refusal(Fault.THROTTLED)).headers

    def _to_refusal(self, fault: Fault) -> ErrorResponse:
        headers = retry_after_header(fault, self._now(), self.retry_after)
        return ErrorResponse(*REFUSALS[fault], headers)
