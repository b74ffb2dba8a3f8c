"""The way from who sends to a node of the API, which is cut off at times."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientResponse, ClientSession, TraceConfig

from api_server import PUSHED, Api, open_api
from tocsin.errors import RequestError
from truth.entrant import Course


@dataclass(frozen=True)
class Line:
    """The way to one node."""

    api: Api
    session: ClientSession
    course: Course

    async def post(
        self, body: bytes, headers: dict[str, str], sent: Callable[[], object] = lambda: None
    ) -> tuple[ClientResponse, dict[str, Any]]:
        """Return what a request is answered; `sent` is called once all of it is on its way."""
        url = self.api.client.make_url(f"/api/push/{PUSHED}")
        headers = {"Content-Type": "application/json", **headers}
        async with self.session.post(
            url, data=body, headers=headers, trace_request_ctx=sent
        ) as response:
            return response, await response.json()

    async def cut(self, body: bytes, headers: dict[str, str]) -> None:
        """Send a request, and close the connection before it is answered."""
        task = asyncio.create_task(self.post(body, headers, lambda: task.cancel()))  # noqa: PLW0108
        await asyncio.gather(task, return_exceptions=True)  # cut, or the node is gone

    def flood(self) -> None:
        """Use up all that the API takes at this moment."""
        with suppress(RequestError):
            while True:
                self.api.services.rate_limits.count_push(PUSHED)


@asynccontextmanager
async def open_line(course, database, clock) -> AsyncIterator[Line]:
    async def on_sent(_session, context, _sent) -> None:
        context.trace_request_ctx()

    tracing = TraceConfig()
    tracing.on_request_chunk_sent.append(on_sent)
    async with (
        open_api(database, clock) as api,
        ClientSession(trace_configs=[tracing]) as session,
    ):
        yield Line(api, session, course)
