"""Minimal aiohttp servers: static responses, alone and after one raw statement."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import asyncpg
from aiohttp import web
from sqlalchemy import URL

from bench.receiver import listen
from tocsin.store import is_sqlite, sqlite_file

Bodies = Mapping[str, bytes]
Read = Callable[[str, int], Awaitable[object]]
CONNECTIONS = 4
"""Connections of the floor to PostgreSQL."""

_WITH_KEY = "SELECT k.*, {columns} FROM api_keys k LEFT JOIN {source} ON true WHERE k.key_id = $1"
_ONE = _WITH_KEY.format(columns="i.*", source="(SELECT * FROM incidents WHERE number = $2) i")
_LATEST = _WITH_KEY.format(
    columns="i.*", source="(SELECT * FROM incidents ORDER BY change DESC LIMIT $2) i"
)


def answer(send: Callable[[int], None], bodies: Bodies) -> None:
    """Serve each path with its body; send the port."""

    async def handle(request: web.Request) -> web.Response:
        return _response(bodies, request)

    app = web.Application()
    app.add_routes([web.get("/{path:.*}", handle)])
    asyncio.run(listen(app, send))


def read_and_answer(send: Callable[[int], None], bodies: Bodies, url: URL, key_id: str) -> None:
    """Serve each path after one raw statement for the key and the incidents; send the port."""
    asyncio.run(_read_and_answer(send, bodies, url, key_id))


async def _read_and_answer(
    send: Callable[[int], None], bodies: Bodies, url: URL, key_id: str
) -> None:
    read = _open_sqlite(url) if is_sqlite(url) else await _open_postgres(url)

    async def handle(request: web.Request) -> web.Response:
        number = request.match_info.get("number")
        if number is None:
            await read(_LATEST, key_id, int(request.query["limit"]))
        else:
            await read(_ONE, key_id, int(number))
        return _response(bodies, request)

    await listen(_app(handle), send)


def _open_sqlite(url: URL) -> Callable[[str, str, int], Awaitable[object]]:
    connection = sqlite3.connect(sqlite_file(url))

    async def read(statement: str, key_id: str, value: int) -> object:
        return connection.execute(statement, {"1": key_id, "2": value}).fetchall()

    return read


async def _open_postgres(url: URL) -> Callable[[str, str, int], Awaitable[object]]:
    dsn = url.set(drivername="postgresql").render_as_string(hide_password=False)
    free: asyncio.LifoQueue[Any] = asyncio.LifoQueue()
    for _ in range(CONNECTIONS):
        connection = await asyncpg.connect(dsn)
        free.put_nowait({sql: await connection.prepare(sql) for sql in (_ONE, _LATEST)})

    async def read(statement: str, key_id: str, value: int) -> object:
        prepared = await free.get()
        try:
            return await prepared[statement].fetch(key_id, value)
        finally:
            free.put_nowait(prepared)

    return read


def _app(handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.Application:
    app = web.Application()
    paths = ("/api/v1/incidents", "/api/v1/incidents/{number}")
    app.add_routes([web.get(path, handle) for path in paths])
    return app


def _response(bodies: Bodies, request: web.Request) -> web.Response:
    return web.Response(body=bodies[request.path_qs], content_type="application/json")
