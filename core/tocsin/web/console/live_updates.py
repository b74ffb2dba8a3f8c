"""Live page updates over server-sent events (WHATWG HTML section 9.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from time import monotonic

import orjson
from aiohttp import web

from tocsin.clock import Clock
from tocsin.errors import CallerError
from tocsin.web.console.sessions import NotSignedIn
from tocsin.web.problems import describe_error

MAX_STREAMS = 64
"""So many pages are kept up to date at once on a node; each costs a few reads every two seconds."""
_EVERY = timedelta(seconds=2)
_REST = 3  # times as long as the last rendering took
_TURNS_BETWEEN_SIGNS = 7
_MOST_TURNS = 300  # ten minutes, after which the browser asks anew


def live_path(path: str) -> str:
    """Return where the page of this path is kept up to date."""
    return f"/live{path}"


class LiveStreams:
    """The open streams of a node.

    They render one after the other, and between two of them rest for longer than that took: however
    many there are, and however much there is to read, most of the node's time stays for others.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._taken = 0
        self._turn = asyncio.Lock()
        self._open: set[asyncio.Task[None]] = set()
        self._is_ending = False

    async def answer(
        self, request: web.Request, render: Callable[[], Awaitable[str]]
    ) -> web.StreamResponse:
        """Answer what `render` returns, at once and whenever that has changed.

        CallerError (503) where too many are open.
        """
        if self._taken >= MAX_STREAMS:
            raise CallerError(503, "Too many pages are open.", headers={"Retry-After": "30"})
        self._taken += 1
        try:
            return await self._stream(request, render)
        finally:
            self._taken -= 1

    async def _stream(
        self, request: web.Request, render: Callable[[], Awaitable[str]]
    ) -> web.StreamResponse:
        first = await render()
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        task = asyncio.create_task(self._follow(response, first, render))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        try:
            await task
        except asyncio.CancelledError:
            task.cancel()
            if asyncio.current_task().cancelling():  # type: ignore[union-attr]
                raise
        except ConnectionError:
            pass  # whoever looked has gone
        except Exception as error:  # noqa: BLE001 - the answer has begun, and can only end
            describe_error(request, error)  # which logs it; the browser asks anew
        return response

    async def _follow(
        self, response: web.StreamResponse, shown: str, render: Callable[[], Awaitable[str]]
    ) -> None:
        await _send(response, "shown", shown)
        for turn in range(1, _MOST_TURNS):
            await self._clock.sleep(_EVERY)
            if self._is_ending:
                return
            try:
                now_shown = await self._in_turn(render)
            except (NotSignedIn, CallerError):  # the session has ended, or the record is gone
                await _send(response, "gone", "")
                return
            if now_shown != shown:
                shown = now_shown
                await _send(response, "shown", shown)
            elif turn % _TURNS_BETWEEN_SIGNS == 0:
                await response.write(b":\n\n")  # or a proxy would cut the silence off

    async def _in_turn(self, render: Callable[[], Awaitable[str]]) -> str:
        async with self._turn:
            began_at = monotonic()
            try:
                return await render()
            finally:
                await self._clock.sleep(timedelta(seconds=_REST * (monotonic() - began_at)))

    async def close(self, _app: web.Application) -> None:
        """End every stream, one that has just begun too, or the node would wait for them to end."""
        self._is_ending = True
        for task in tuple(self._open):
            task.cancel()


async def _send(response: web.StreamResponse, event: str, content: str) -> None:
    # JSON, since a line break would end the event's data
    await response.write(b"event: %s\ndata: %s\n\n" % (event.encode(), orjson.dumps(content)))
