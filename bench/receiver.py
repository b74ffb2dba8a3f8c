"""Receiver that counts requests, and a minimal loop that posts to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator

import aiohttp
from aiohttp import web

Request = tuple[dict[str, str], bytes]


def receive(send: Callable[[int], None]) -> None:
    """Answer every POST to `/hook`, and `/count` with their number; send the port."""
    asyncio.run(_receive(send))


async def _receive(send: Callable[[int], None]) -> None:
    received = 0

    async def hook(request: web.Request) -> web.Response:
        nonlocal received
        await request.read()
        received += 1
        return web.Response(status=204)

    async def count(_request: web.Request) -> web.Response:
        return web.json_response(received)

    app = web.Application()
    app.add_routes([web.post("/hook", hook), web.get("/count", count)])
    await listen(app, send)


def receive_slowly(send: Callable[[int], None]) -> None:
    """Answer every POST after ten seconds; send the port."""
    asyncio.run(_receive_slowly(send))


async def _receive_slowly(send: Callable[[int], None]) -> None:
    async def hook(_request: web.Request) -> web.Response:
        await asyncio.sleep(10)
        return web.Response(status=204)

    app = web.Application()
    app.add_routes([web.post("/hook", hook)])
    await listen(app, send)


async def listen(app: web.Application, send: Callable[[int], None]) -> None:
    """Serve an application on a free port, and send the port."""
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    send(runner.addresses[0][1])
    await asyncio.Event().wait()


async def count_received(url: str) -> int:
    """Return the number of deliveries that the receiver at `url` has answered."""
    async with aiohttp.ClientSession() as session, session.get(f"{url}/count") as response:
        return int(await response.json())


async def post_all(url: str, requests: Iterable[Request], concurrency: int) -> None:
    """Post everything, a fixed number at a time."""
    waiting = iter(requests)
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(_post(session, url, waiting))


async def _post(session: aiohttp.ClientSession, url: str, waiting: Iterator[Request]) -> None:
    for headers, body in waiting:
        async with session.post(url, headers=headers, data=body) as response:
            await response.read()
