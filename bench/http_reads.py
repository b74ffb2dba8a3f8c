"""Authenticated HTTP reads, served by a separate node with 100,000 incidents."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
from sqlalchemy import URL, Connection

from bench.baseline import answer, read_and_answer
from bench.comparison import OURS, interleave, report_times
from bench.databases import KINDS, NewUrl, new_urls, open_new
from bench.load import rate
from bench.samples import fill
from bench.sizes import choose_size
from bench.subprocesses import child, free_port
from tocsin.clock import SystemClock
from tocsin.credentials import ApiKey, Hasher, Scope, create_api_key, generate_key
from tocsin.knowledge.search.indexer import count_unindexed
from tocsin.store import Database, open_database

INCIDENTS = choose_size(100_000)
PATHS_OF_ONE = tuple(
    f"/api/v1/incidents/{number}"
    for number in random.Random(1).sample(range(1, INCIDENTS + 1), 500)
)
_ENCRYPTION_KEY = "A" * 43 + "="
"""One for all runs, since databases may be kept between them."""
KINDS_OF_READS = {
    f"GET one of {INCIDENTS:,} incidents": PATHS_OF_ONE,
    f"GET 20 of {INCIDENTS:,} incidents": ("/api/v1/incidents?limit=20",),
}


def run(rounds: int) -> None:
    """Measure every kind of database."""
    for kind in KINDS:
        with new_urls(kind) as new_url:
            _compare(kind, new_url, rounds)


def _compare(kind: str, new_url: NewUrl, rounds: int) -> None:
    url, key_id, key = asyncio.run(prepare(new_url))
    headers = {"X-API-Key": key}
    with node(url) as port:
        bodies = asyncio.run(_bodies(port, headers))
        with child(answer, bodies) as bare, child(read_and_answer, bodies, url, key_id) as reads:
            servers = {OURS: port, "minimal handler": bare, "minimal handler, one statement": reads}

            def measure(titles: Mapping[str, str], names: Sequence[str]) -> None:
                for title, name in titles.items():
                    variants = {
                        server: partial(rate, servers[server], KINDS_OF_READS[name], headers)
                        for server in names
                    }
                    rates = asyncio.run(interleave(variants, rounds))
                    report_times(f"{title}, {kind}", "requests", rates)

            beside = {f"{name}, beside indexing": name for name in KINDS_OF_READS}
            measure(beside, [OURS, "minimal handler"])
            print(f"\nIncidents not indexed yet: {asyncio.run(_count_unindexed(url)):,}.")
            wait_until_indexed(url)
            measure({name: name for name in KINDS_OF_READS}, list(servers))


def wait_until_indexed(url: URL) -> None:
    """Return once the node of this database has indexed every incident."""
    while asyncio.run(_count_unindexed(url)):
        time.sleep(1)


async def _count_unindexed(url: URL) -> int:
    database = open_database(url)
    try:
        return await database.read(count_unindexed)
    finally:
        await database.close()


async def prepare(new_url: NewUrl) -> tuple[URL, str, str]:
    """Fill a new database, and return its URL, and the id and text of a key."""
    url = await asyncio.to_thread(new_url)
    database = await open_new(lambda: url)
    await fill(database, "cloud", INCIDENTS, quiet=True)
    await database.write(_analyze)
    key_id, text = await add_key(database, Scope.INCIDENTS_READ)
    await database.close()
    return url, key_id, text


def _analyze(connection: Connection) -> None:
    """Run what PostgreSQL does within minutes by itself."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("ANALYZE")


async def add_key(database: Database, *scopes: Scope) -> tuple[str, str]:
    """Store a new API key with these scopes, and return its ID and its text."""
    value, text = generate_key()
    clock = SystemClock()
    hasher = Hasher(clock)
    key = ApiKey(
        id=value.identifier,
        key_id=value.identifier,
        prefix=value.prefix,
        name="bench",
        description="",
        scopes=scopes,
        secret_hash=await hasher.hash(value.secret),
        created_by="bench",
        created_at=clock.now(),
        updated_at=clock.now(),
        expires_at=clock.now() + timedelta(days=1),
    )
    await database.write(create_api_key, key)
    hasher.close()
    return value.identifier, text


@dataclass(frozen=True, slots=True)
class RunningNode:
    """A process of `tocsin serve` that responds."""

    port: int
    pid: int
    log: Path


@contextmanager
def node(url: URL) -> Iterator[int]:
    """Run `tocsin serve` on this database without plugins, and yield its port."""
    with serve(url) as running:
        yield running.port


@contextmanager
def serve(url: URL) -> Iterator[RunningNode]:
    """Run `tocsin serve` on this database without plugins, and yield the process."""
    port = free_port()
    with TemporaryDirectory() as folder:
        plugins = Path(folder) / "plugins.toml"
        plugins.touch()
        settings = {
            "TOCSIN_DATABASE_URL": url.render_as_string(hide_password=False),
            "TOCSIN_DATA_DIR": folder,
            "TOCSIN_PLUGINS_FILE": str(plugins),
            "TOCSIN_PORT": str(port),
            "TOCSIN_BASE_URL": "https://tocsin.example",
            "TOCSIN_RATE_LIMIT": "1000000",
            "TOCSIN_RATE_BURST": "1000000",
            "TOCSIN_ENCRYPTION_KEY": _ENCRYPTION_KEY,
        }
        command = [sys.executable, "-m", "tocsin", "serve"]
        log = Path(folder) / "log"
        with log.open("wb") as stderr:
            process = subprocess.Popen(command, env=os.environ | settings, stderr=stderr)
        try:
            assert asyncio.run(_answers(port, process)), log.read_text()
            yield RunningNode(port, process.pid, log)
        finally:
            process.terminate()
            process.wait()


async def _answers(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Return True once the node responds, False if it ends before."""
    async with aiohttp.ClientSession() as session:
        while process.poll() is None:
            try:
                await session.get(f"http://127.0.0.1:{port}/healthz")
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.1)
            else:
                return True
    return False


async def _bodies(port: int, headers: dict[str, str]) -> dict[str, bytes]:
    """Return the node's response for each path, which the baselines serve as well."""
    bodies = {}
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers) as session:
        for path in (path for paths in KINDS_OF_READS.values() for path in paths):
            async with session.get(path) as response:
                assert response.status == 200, await response.text()
                bodies[path] = await response.read()
    return bodies
