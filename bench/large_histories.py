"""Reads of a node with 1,000,000 incidents, compared with 10,000: as many a day, for longer.

Every tenth incident has an event with a delivery and an attempt. Preparing a history takes much
longer than measuring it, so `--folder` keeps what `prepare-histories` has prepared.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import partial
from math import log
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from urllib.parse import quote

import aiohttp
from sqlalchemy import URL, Connection, delete, func, select

from bench.console import sign_in
from bench.databases import KINDS, kept_databases, open_new, settle
from bench.history import CHUNK, WORDS, Rows, entity_of, fill, load
from bench.http_reads import add_key, node
from bench.sizes import choose_size
from tocsin import accounting
from tocsin.clock import SystemClock
from tocsin.credentials import Scope
from tocsin.delivery import record_application
from tocsin.identifiers import first_id
from tocsin.incidents.documents import rebuild_documents
from tocsin.knowledge.search.indexer import index_batch
from tocsin.model import EntityKind
from tocsin.store import open_database
from tocsin.store.tables import attempts, deliveries, entities, events, incidents

SIZES = (10_000, choose_size(1_000_000))
INTERVAL = timedelta(seconds=63)
"""The time between two incidents: 1,371 incidents a day."""
READS = 200
STARTS = 3
_INDEXED = 2_000
"""The number of incidents that are indexed in one transaction, for speed."""
_DELIVERED = 10
"""One of so many incidents has an event."""
_COMMON = 117
"""The rank of a word in about 2% of the incidents."""
_PATHS: Mapping[str, Callable[[int, int], str]] = {
    "incident": lambda size, n: f"/api/v1/incidents/{1 + n * 7919 % size}",
    "first page of the list": lambda _size, n: f"/api/v1/incidents?limit={20 + n % 2}",
    "list of a severity": lambda _size, n: f"/api/v1/incidents?severity=High&limit={20 + n % 2}",
    "search for an entity": lambda size, n: _search(_seen(EntityKind.IP, size, n)),
    "search for a word in 2%": lambda _size, n: _search(_common(n)),
    "search for a phrase": lambda _size, n: _search(f'"{WORDS[3]} {WORDS[n % 20]}"'),
    "prefix of common words": lambda _size, n: _search(f"{_common(n)[:5]}*"),
    "entity by its value": lambda size, n: (
        f"/api/v1/search/entities?q={_seen(EntityKind.DOMAIN, size, n)}"
    ),
    "graph around an entity": lambda size, n: (
        f"/api/v1/graph/entity/{_seen(EntityKind.IP, size, n)}"
    ),
    "path between two entities": lambda size, n: (
        f"/api/v1/graph/path?from={_seen(EntityKind.IP, size, n)}"
        f"&to={_seen(EntityKind.HOST, size, n)}"
    ),
    "graph statistics": lambda _size, _n: "/api/v1/graph/stats",
    "console: overview": lambda _size, _n: "/",
    "console: incidents": lambda _size, _n: "/incidents",
    "console: incident": lambda size, n: f"/incidents/{1 + n * 7919 % size}",
    "console: deliveries": lambda _size, _n: "/deliveries",
}


def prepare(_rounds: int, folder: Path | None) -> None:
    """Prepare the histories of every kind of database that the folder does not have."""
    if folder is None:
        raise SystemExit("prepare-histories needs --folder: the folder to keep the databases in")
    for kind in KINDS:
        with _prepared(kind, folder):
            pass


def run(rounds: int, folder: Path | None) -> None:
    """Measure every kind of database, prepared in this folder, or in none that is kept."""
    with TemporaryDirectory(prefix="tocsin-bench-") as temporary:
        for kind in KINDS:
            with _prepared(kind, folder or Path(temporary)) as histories:
                _compare(kind, histories, rounds)


@contextmanager
def _prepared(kind: str, folder: Path) -> Iterator[list[_History]]:
    with kept_databases(kind, folder) as keep:
        names = {size: f"{kind.lower()}-{size}" for size in SIZES}
        urls = {size: keep(name, partial(_fill, size)) for size, name in names.items()}
        for url in urls.values():
            asyncio.run(_upgrade(url))
        yield [_History(url, size) for size, url in urls.items()]


def _fill(size: int, url: URL) -> None:
    begin = time.perf_counter()
    asyncio.run(_prepare(size, url))
    seconds = time.perf_counter() - begin
    print(f"{size:,} incidents prepared in {seconds:,.0f} s: {url.database}", flush=True)


async def _upgrade(url: URL) -> None:
    """Bring what an earlier version may have prepared to the current schema, and apply it.

    Without an application, a proof would search all events for those that were routed before one.
    """
    database = await open_new(lambda: url)
    await database.write(record_application)
    await database.close()


async def _prepare(size: int, url: URL) -> None:
    """Fill a database, and index it."""
    database = await open_new(lambda: url)
    end = SystemClock().now()
    await fill(database, size, end - INTERVAL * size, INTERVAL * size)
    await database.write(lambda connection: connection.execute(delete(entities)).close())
    for start in range(1, size + 1, CHUNK):
        numbers = range(start, min(start + CHUNK, size + 1))
        await database.write(_add_deliveries, numbers, size, end)
    last: int | None = 0
    while last is not None:
        last = await database.write(rebuild_documents, last, CHUNK)
    while await database.write(index_batch, _INDEXED):
        pass
    await database.read(settle)
    await database.close()


def _compare(kind: str, histories: Sequence[_History], rounds: int) -> None:
    starts = [[_measure_start(history.url) for _ in range(STARTS)] for history in histories]
    small, large = (f"{size:,}" for size in SIZES)
    print(
        f"\n| {kind}: ms, p50 and p99 | {small} incidents | {large} incidents | ratio of p50 |"
        "\n|---|---:|---:|---:|",
        flush=True,
    )
    _report("start until the first response", starts)
    with ExitStack() as stack:
        ports = [stack.enter_context(node(history.url)) for history in histories]
        asyncio.run(_measure(histories, ports, rounds))


def _measure_start(url: URL) -> float:
    begin = time.perf_counter()
    with node(url):
        return time.perf_counter() - begin


async def _measure(histories: Sequence[_History], ports: Sequence[int], rounds: int) -> None:
    for history, port in zip(histories, ports, strict=True):
        await history.connect(port)
    for name in (*_PATHS, "proof of 24 hours"):
        times: list[list[float]] = [[] for _ in histories]
        for number in range(rounds + 1):
            for history, taken in zip(histories, times, strict=True):
                seconds = [second async for second in history.measure(name)]
                if number:  # the first round is a warm-up
                    taken.extend(seconds)
        _report(name, times)
    for history in histories:
        await history.close()


def _report(name: str, times: Sequence[Sequence[float]]) -> None:
    figures = [(median(taken) * 1000, quantiles(taken, n=100)[98] * 1000) for taken in times]
    cells = [f"{p50:.2f}, {p99:.2f}" for p50, p99 in figures]
    ratio = figures[1][0] / figures[0][0]
    print(f"| {name} | {' | '.join(cells)} | {ratio:.2f} |", flush=True)


def _seen(kind: EntityKind, size: int, number: int) -> str:
    """Return an entity of about 20 incidents, whatever the size."""
    return entity_of(kind, int(size / (20 * log(size / 2))) + number % 20)


def _search(text: str) -> str:
    return f"/api/v1/search?q={quote(text)}"


def _common(number: int) -> str:
    return WORDS[_COMMON + number % 20 - 10]


class _History:
    """A history of one size, the node that serves it, and a client."""

    def __init__(self, url: URL, size: int) -> None:
        self.size = size
        self.url = url

    async def connect(self, port: int) -> None:
        """Connect to the node at `port`, and to the database, and sign in."""
        self._client = aiohttp.ClientSession(
            f"http://127.0.0.1:{port}", cookie_jar=aiohttp.DummyCookieJar()
        )
        self._database = open_database(self.url)
        scopes = (Scope.INCIDENTS_READ, Scope.SEARCH_READ, Scope.GRAPH_READ)
        _, key = await add_key(self._database, *scopes)
        cookie = await sign_in(self.url)
        self._headers = {"X-API-Key": key, "Cookie": f"__Host-tocsin={cookie}"}
        self._end = await self._database.read(_find_end)

    async def measure(self, name: str) -> AsyncIterator[float]:
        """Yield the seconds of each read."""
        for number in range(READS):
            begin = time.perf_counter()
            await self._read(name, number)
            yield time.perf_counter() - begin

    async def close(self) -> None:
        """Disconnect."""
        await self._client.close()
        await self._database.close()

    async def _read(self, name: str, number: int) -> None:
        if name not in _PATHS:
            period = accounting.Period(self._end - timedelta(days=1), self._end)
            await self._database.read(accounting.report_period, period, self._end)
            return
        path = _PATHS[name](self.size, number)
        header = "X-API-Key" if path.startswith("/api/") else "Cookie"
        headers = {header: self._headers[header]}
        async with self._client.get(path, headers=headers, allow_redirects=False) as response:
            text = await response.text()
            assert response.status == 200, (path, response.status, text)


def _find_end(connection: Connection) -> datetime:
    """Return the end of the history, which may have been prepared days ago."""
    end: datetime = connection.scalars(select(func.max(incidents.c.occurred_at))).one()
    return end


def _add_deliveries(connection: Connection, numbers: range, size: int, end: datetime) -> None:
    """Store a delivered event of every tenth incident."""
    told: Rows = []
    sent: Rows = []
    tried: Rows = []
    for number in numbers[::_DELIVERED]:
        at = end - INTERVAL * (size - number)
        event, delivery = first_id("evt", at), first_id("dlv", at)
        subject = f"incident:{number}"
        data = {"incident_number": number, "severity": "High"}
        told.append((event, "incident-alert", at, data, subject, [], {}, True))
        sent.append((delivery, event, "soar", subject, "delivered", 1, 0, at, at, at))
        tried.append((delivery, 1, at, 40, "delivered", 200, b'{"status": "accepted"}'))
    load(connection, events, _EVENT, told)
    load(connection, deliveries, _DELIVERY, sent)
    load(connection, attempts, _ATTEMPT, tried)


_EVENT = ("id", "event_type", "timestamp", "data", "subject", "related", "context", "routed")
_DELIVERY = (
    *("id", "event_id", "destination", "subject", "state", "attempts", "schedule_start", "due_at"),
    *("created_at", "finished_at"),
)
_ATTEMPT = ("delivery_id", "number", "started_at", "duration_ms", "outcome", "status", "response")
