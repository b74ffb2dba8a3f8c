"""Minimal aiohttp servers: static responses, and responses after the same database reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from aiohttp import web
from sqlalchemy import URL, Connection, bindparam, func, select

from bench.receiver import listen
from tocsin.store import open_database
from tocsin.store.tables import api_keys, incident_alerts, incident_entities, incidents

Bodies = Mapping[str, bytes]

_key = select(api_keys).where(api_keys.c.key_id == bindparam("key_id"))
_alerts = select(func.count()).where(incident_alerts.c.incident_number == incidents.c.number)
_incidents = select(incidents, _alerts.scalar_subquery())
_one = _incidents.where(incidents.c.number == bindparam("number"))
_latest = _incidents.order_by(incidents.c.change.desc()).limit(20)
_entities = select(incident_entities).where(
    incident_entities.c.incident_number.in_(bindparam("numbers", expanding=True))
)


def answer(send: Callable[[int], None], bodies: Bodies) -> None:
    """Serve each path with its body; send the port."""

    async def handle(request: web.Request) -> web.Response:
        return _response(bodies, request)

    app = web.Application()
    app.add_routes([web.get("/{path:.*}", handle)])
    asyncio.run(listen(app, send))


def read_and_answer(send: Callable[[int], None], bodies: Bodies, url: URL, key_id: str) -> None:
    """Serve after the database reads of the real response; send the port."""
    asyncio.run(_read_and_answer(send, bodies, url, key_id))


async def _read_and_answer(
    send: Callable[[int], None], bodies: Bodies, url: URL, key_id: str
) -> None:
    database = open_database(url)

    async def handle(request: web.Request) -> web.Response:
        number = request.match_info.get("number")
        read = database.read if number is None else database.lookup
        await read(_read, key_id, number)
        return _response(bodies, request)

    await listen(_app(handle), send)


def _app(handle: Callable[[web.Request], object]) -> web.Application:
    app = web.Application()
    paths = ("/api/v1/incidents", "/api/v1/incidents/{number}")
    app.add_routes([web.get(path, handle) for path in paths])
    return app


def _response(bodies: Bodies, request: web.Request) -> web.Response:
    return web.Response(body=bodies[request.path_qs], content_type="application/json")


def _read(connection: Connection, key_id: str, number: str | None) -> None:
    connection.execute(_key, {"key_id": key_id}).one()
    found = _latest if number is None else _one
    values = {} if number is None else {"number": int(number)}
    numbers = [row.number for row in connection.execute(found, values)]
    connection.execute(_entities, {"numbers": numbers}).all()
