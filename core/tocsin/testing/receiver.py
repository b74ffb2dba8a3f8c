"""A receiver's API on loopback, for the tests of a channel that keeps objects there.

Derive from `ReceiverSimulator` and say only what is the vendor's: its routes, how it is signed in
to, and which objects it has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from email.utils import format_datetime
from itertools import count
from typing import Any, ClassVar, Self

import orjson
from aiohttp import web

from tocsin.clock import Clock
from tocsin.testing.faults import Fault, spoil
from tocsin.testing.server import LoopbackServer
from tocsin.testing.simulator import Asked, Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteObject:
    """An object at the receiver's, in nobody's shape."""

    id: str
    """What a receipt calls it."""
    observables: Sequence[str] = ()
    """The values of its observables; a value that it has twice is in it twice."""
    notes: Sequence[str] = ()
    is_open: bool = True


class ReceiverSimulator(ABC):
    """The API of one receiver; `async with` serves it, at `url`."""

    open_paths: ClassVar[tuple[str, ...]] = ()
    """The paths that are answered to everybody, such as that of a sign-in."""
    search_delay: ClassVar[timedelta] = timedelta(0)
    """How long its search does not find what was just made; `is_searchable` says so."""

    def __init__(self, clock: Clock, *, port: int = 0) -> None:
        """Begin without any object, at a port that is free unless one is given."""
        self.clock = clock
        self.requests: list[Asked] = []
        """Every request that came, in order."""
        self.retry_after = timedelta(seconds=30)
        """What the faults ask for that name a delay."""
        self.mistakes: list[Exception] = []
        """What its own handlers have raised, which is answered 500."""
        self.lacks: set[str] = set()
        """Permissions that whoever asks does not have, by the vendor's names."""
        self._faults: dict[int, Fault] = {}
        self._numbers = count(1)
        app = web.Application(middlewares=[self._answer])
        app.add_routes(self.routes())
        self._server = LoopbackServer(app, port)

    # what a vendor's simulator says

    @abstractmethod
    def routes(self) -> Sequence[web.RouteDef]:
        """Return the vendor's routes, whose handlers return `self.json(...)`."""

    @abstractmethod
    def objects(self) -> Sequence[RemoteObject]:
        """Return the objects that there are, in the order in which they were made."""

    @abstractmethod
    def remove(self, identifier: str) -> None:
        """Remove an object, as a person there would."""

    @abstractmethod
    def is_signed(self, request: web.Request) -> bool:
        """Return whether a request shows the right credentials."""

    # what its handlers use

    def next_number(self) -> int:
        """Return a number that nothing has yet."""
        return next(self._numbers)

    def is_searchable(self, made_at: Any) -> bool:
        """Return whether the search finds what was made then."""
        return bool(self.clock.now() - made_at >= self.search_delay)

    @staticmethod
    def json(content: Any, status: int = 200) -> web.Response:
        """Return an answer in JSON."""
        body = orjson.dumps(content)
        return web.Response(body=body, status=status, content_type="application/json")

    # what a test uses

    @property
    def url(self) -> str:
        """The address of the API, without a slash at the end."""
        return self._server.url

    def fail(self, fault: Fault, *, after: int = 0) -> None:
        """Have a request go wrong: the next, or the one after so many more."""
        self._faults[len(self.requests) + after] = fault

    def heal(self) -> None:
        """Have nothing go wrong any more that has not yet."""
        self._faults.clear()

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.__aexit__()

    @web.middleware
    async def _answer(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[Any]]
    ) -> web.StreamResponse:
        fault = self._faults.pop(len(self.requests), None)
        query, headers = dict(request.query), dict(request.headers)
        self.requests.append(
            Asked(self.clock.now(), request.method, request.path_qs, query, headers)
        )

        async def answer() -> web.Response:
            return await self._handle(request, handler)

        if fault is None:
            response: web.StreamResponse = await answer()
        else:
            response = await spoil(fault, request, answer, self.clock.now(), self.retry_after)
        if not response.prepared:
            response.headers["Date"] = format_datetime(self.clock.now(), usegmt=True)
        return response

    async def _handle(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[Any]]
    ) -> web.Response:
        if request.path not in self.open_paths and not self.is_signed(request):
            return self.json({"message": "who are you?"}, 401)
        try:
            response: web.Response = await handler(request)
        except Refusal as refusal:
            response = self.json({"message": str(refusal)}, refusal.status)
            response.headers.update(refusal.headers)
        except web.HTTPException as error:
            response = self.json({"message": error.reason}, error.status)
        except Exception as mistake:
            self.mistakes.append(mistake)
            raise
        return response
