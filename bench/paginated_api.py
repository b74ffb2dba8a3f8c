"""Incidents synced per second from a paginated HTTP API, compared with a client that only reads
pages.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from aiohttp import web

from bench.comparison import OURS, interleave, report_rates
from bench.databases import KINDS, NewUrl, new_urls, open_new
from bench.receiver import listen
from bench.subprocesses import child
from bench.sync import count_incidents, read_all
from tocsin.clock import SystemClock
from tocsin.testing import open_provider

sys.path.append(str(Path(__file__).parents[1] / "examples/tocsin-example-provider/src"))

from tocsin_example.provider import ExampleProvider

CASES = 10_000
PAGE = ExampleProvider.page_size
_AGO = timedelta(hours=6)  # the first change; one change per second
_PATH = "/api/v1/cases"
# One window for all cases, so that none is requested twice
_SETTINGS = {
    "client_id": "tocsin",
    "client_secret": "a secret",
    "first_fetch": "12h",
    "longest_window": "24h",
}


def run(rounds: int) -> None:
    """Measure every kind of database."""
    with child(serve) as port:
        for kind in KINDS:
            with new_urls(kind) as new_url:
                asyncio.run(_measure(kind, new_url, f"http://127.0.0.1:{port}", rounds))


async def _measure(kind: str, new_url: NewUrl, url: str, rounds: int) -> None:
    async def ours() -> float:
        database = await open_new(new_url)
        options = {"clock": SystemClock(), "url": url, **_SETTINGS}
        async with open_provider(ExampleProvider, **options) as provider:
            seconds = await read_all(provider, database)
        assert await database.read(count_incidents) == CASES
        await database.close()
        return CASES / seconds

    async def bare() -> float:
        begin = time.perf_counter()
        assert await _read_pages(url) == CASES
        return CASES / (time.perf_counter() - begin)

    rates = await interleave({OURS: ours, "reading and parsing only": bare}, rounds)
    report_rates(f"{CASES:,} incidents in pages of {PAGE}; {kind}", "incidents", rates)


async def _read_pages(url: str) -> int:
    """Return the number of cases on all pages, each read and parsed."""
    found, query = 0, {"limit": str(PAGE)}
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"{url}{_PATH}", params=query) as response:
                page = orjson.loads(await response.read())
            found += len(page["cases"])
            if page["next_page_token"] is None:
                return found
            query["page_token"] = page["next_page_token"]


def serve(send: Callable[[int], None]) -> None:
    """Respond like Example's API, with prepared pages; send the port."""
    asyncio.run(_serve(send))


async def _serve(send: Callable[[int], None]) -> None:
    pages = list(_pages(datetime.now(UTC) - _AGO))

    async def sign_in(_request: web.Request) -> web.Response:
        return web.json_response({"access_token": "token", "expires_in": 3600})

    async def list_cases(request: web.Request) -> web.Response:
        page = pages[int(request.query.get("page_token", 0))]
        return web.Response(body=page, content_type="application/json")

    app = web.Application()
    app.add_routes([web.post("/oauth/token", sign_in), web.get(_PATH, list_cases)])
    await listen(app, send)


def _pages(begin: datetime) -> Iterator[bytes]:
    for start in range(0, CASES, PAGE):
        following = start + PAGE
        cases = [_case(number, begin) for number in range(start, min(following, CASES))]
        token = str(following // PAGE) if following < CASES else None
        yield orjson.dumps({"cases": cases, "next_page_token": token})


def _case(number: int, begin: datetime) -> dict[str, Any]:
    moment = (begin + timedelta(seconds=number)).isoformat()
    host = f"WS-{number % 5000:04}"
    entities = {
        "ip": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}",
        "host": host,
        "user": f"user{number % 3000}@corp.example",
        "domain": f"c{number % 700}.bad.example",
    }
    return {
        "id": f"case-{number}",
        "number": 100_000 + number,
        "title": f"Suspicious PowerShell command line on {host}",
        "description": f"A process on {host} ran an encoded command and opened connections. " * 3,
        "severity": "high",
        "status": "open",
        "merged_into": None,
        "created_at": moment,
        "changed_at": moment,
        "entities": [{"type": kind, "value": value} for kind, value in entities.items()],
    }
