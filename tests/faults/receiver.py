"""A receiver of many destinations that verifies with two libraries and answers as it is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Self

from aiohttp import web
from pydantic import TypeAdapter

from end_to_end.service import SECRET, destination
from ports import free_port
from signatures import verify
from tocsin.fields import Duration

from .oracle import Arrival, Oracle

Answer = Callable[[Arrival, web.Request], Awaitable[web.StreamResponse]]
"""What a destination's receiver does with an arrival; only a 2xx status accepts it."""

_durations: TypeAdapter[list[timedelta]] = TypeAdapter(list[Duration])


async def accept(_arrival: Arrival, _request: web.Request) -> web.StreamResponse:
    return web.Response(status=204)


class Receiver:
    """Tells the oracle of everything that arrives; `answers` has what is not simply accepted."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.port = free_port()
        self._host = host
        self.oracle = Oracle()
        self.answers: dict[str, Answer] = {}
        self.secret = SECRET
        self._mistakes: list[str] = []

    def destination(
        self, name: str = "soc", *, retry_schedule: list[str], **settings: object
    ) -> str:
        """Return the block of a destination that leads here and is to get every event."""
        self.oracle.schedules[name] = _durations.validate_python(retry_schedule)
        url = f"http://127.0.0.1:{self.port}/hook/{name}"
        return destination(name, url, retry_schedule=retry_schedule, **settings)

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/hook/{destination}", self._receive)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self.port).start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._runner.cleanup()
        assert not self._mistakes, "\n".join(self._mistakes)

    async def _receive(self, request: web.Request) -> web.StreamResponse:
        name, at = request.match_info["destination"], datetime.now(UTC)
        headers = {key.lower(): value for key, value in request.headers.items()}
        self._verify(await request.read(), headers)
        arrival = Arrival(name, headers["webhook-id"], at)
        self.oracle.arrivals.append(arrival)
        response = await self.answers.get(name, accept)(arrival, request)
        arrival.is_accepted = 200 <= response.status < 300
        return response

    def _verify(self, body: bytes, headers: dict[str, str]) -> None:
        """Verify twice; a mistake fails the test that uses this receiver."""
        try:
            verify(self.secret, body, headers)
        except Exception as error:  # noqa: BLE001 - whatever they find
            self._mistakes.append(repr(error))
