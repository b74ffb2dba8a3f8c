"""Live page updates over server-sent events (WHATWG HTML section 9.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from time import monotonic

import orjson
from aiohttp import web

from tocsin.clock import Clock
from tocsin.credentials import CheckRequired
from tocsin.errors import RequestError
from tocsin.web.console.sessions import NotSignedIn
from tocsin.web.problems import ProblemError, describe_error

MAX_STREAMS = 64
"""Maximum number of live pages on a node; each costs a few reads every two seconds."""
_EVERY = timedelta(seconds=2)
_REST = 3  # pause between renderings, in multiples of the last rendering time
_TURNS_BETWEEN_SIGNS = 7
_MOST_TURNS = 300  # ten minutes, after which the browser reconnects


_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store"}


def live_path(path: str) -> str:
    """Return the path of the event stream of a page."""
    return f"/live{path}"


def is_live(request: web.BaseRequest) -> bool:
    """Return whether a request is for the event stream of a page."""
    return request.path.startswith("/live/")


def build_reload() -> web.Response:
    """Return the event stream that makes the browser reload its page.

    A browser cannot tell why a stream was refused, and would show the old page forever. The
    reloaded page leads to the sign-in page, or starts the session check.
    """
    return web.Response(body=_encode_event("gone", ""), headers=_HEADERS)


class LiveStreams:
    """Open event streams of a node.

    Streams render one at a time, and pause after each rendering for longer than it took. So most of
    the node's time stays available for other work, regardless of the number of streams.
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
        """Stream the result of `render` immediately, and again whenever it changes.

        Raises ProblemError (503) if too many streams are open.
        """
        if self._taken >= MAX_STREAMS:
            raise ProblemError(
                503,
                "Too many pages with live updates are open. Close some of them, and try again.",
                headers={"Retry-After": "30"},
            )
        self._taken += 1
        try:
            return await self._stream(request, render)
        finally:
            self._taken -= 1

    async def _stream(
        self, request: web.Request, render: Callable[[], Awaitable[str]]
    ) -> web.StreamResponse:
        first = await render()
        response = web.StreamResponse(headers=_HEADERS)
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
            pass  # the browser has disconnected
        except Exception as error:  # noqa: BLE001 - the response has started, so it can only end
            describe_error(request, error)  # logs the error; the browser reconnects
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
            except (CheckRequired, NotSignedIn, RequestError):
                # The session has ended or must be checked, or the record was deleted
                await _send(response, "gone", "")
                return
            if now_shown != shown:
                shown = now_shown
                await _send(response, "shown", shown)
            elif turn % _TURNS_BETWEEN_SIGNS == 0:
                await response.write(b":\n\n")  # keeps proxies from closing an idle connection

    async def _in_turn(self, render: Callable[[], Awaitable[str]]) -> str:
        async with self._turn:
            began_at = monotonic()
            try:
                return await render()
            finally:
                await self._clock.sleep(timedelta(seconds=_REST * (monotonic() - began_at)))

    async def close(self, _app: web.Application) -> None:
        """End all streams, including new ones, so that the node can stop."""
        self._is_ending = True
        for task in tuple(self._open):
            task.cancel()


async def _send(response: web.StreamResponse, event: str, content: str) -> None:
    await response.write(_encode_event(event, content))


def _encode_event(event: str, content: str) -> bytes:
    # JSON, because a line break would end the event's data
    return b"event: %s\ndata: %s\n\n" % (event.encode(), orjson.dumps(content))
