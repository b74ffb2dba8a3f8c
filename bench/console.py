"""Console pages, served by a separate node with 100,000 incidents."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import aiohttp
from sqlalchemy import URL

from bench.baseline import answer
from bench.comparison import OURS, interleave, report_times
from bench.databases import KINDS, NewUrl, new_urls
from bench.http_reads import INCIDENTS, node, prepare, wait_until_indexed
from bench.load import rate
from bench.subprocesses import child
from tocsin.clock import SystemClock
from tocsin.credentials import ConsoleRole, ConsoleSession, begin_session
from tocsin.store import open_database

PAGES = {
    "the overview": "/",
    f"50 of {INCIDENTS:,} incidents": "/incidents",
    "an incident": f"/incidents/{INCIDENTS // 2}",
}


def run(rounds: int) -> None:
    """Measure every kind of database."""
    for kind in KINDS:
        with new_urls(kind) as new_url:
            _compare(kind, new_url, rounds)


def _compare(kind: str, new_url: NewUrl, rounds: int) -> None:
    url, _, _ = asyncio.run(prepare(new_url))
    headers = {"Cookie": f"__Host-tocsin={asyncio.run(sign_in(url))}"}
    with node(url) as port:
        wait_until_indexed(url)
        bodies = asyncio.run(_bodies(port, headers, list(PAGES.values())))
        with child(answer, bodies) as bare:
            for name, path in PAGES.items():
                servers = {OURS: port, "bare handler": bare}
                variants = {
                    page_path: partial(rate, its_port, [path], headers)
                    for page_path, its_port in servers.items()
                }
                rates = asyncio.run(interleave(variants, rounds))
                report_times(f"{name}, {kind}", "pages", rates)


async def sign_in(url: URL) -> str:
    """Return the cookie of a new session of an admin."""
    database, now = open_database(url), SystemClock().now()
    session = ConsoleSession("admin:bench", "bench", ConsoleRole.ADMIN, now + timedelta(hours=1))
    secret, _ = await database.write(begin_session, session, now)
    await database.close()
    return secret


async def _bodies(port: int, headers: dict[str, str], paths: Sequence[str]) -> dict[str, bytes]:
    """Return the pages, which the baselines serve as well."""
    bodies = {}
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers) as session:
        for path in paths:
            async with session.get(path, allow_redirects=False) as response:
                assert response.status == 200, await response.text()
                bodies[path] = await response.read()
    return bodies
