"""Search in a history of 1,000,000 incidents, compared with 10,000; and indexing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median, quantiles

from sqlalchemy import Connection, delete

from bench.databases import KINDS, NewUrl, new_urls, open_new, settle
from bench.history import WORDS, entity_of, fill
from bench.sizes import choose_size
from tocsin.clock import SystemClock
from tocsin.events import Notifiers
from tocsin.knowledge.search import SearchIndexer, search_documents, search_entities
from tocsin.knowledge.search.indexer import index_batch
from tocsin.model import EntityKind
from tocsin.store import Database
from tocsin.store.tables import entities

SIZES = (10_000, choose_size(1_000_000))
CHUNK = 2_000
"""The number of incidents that are indexed in one transaction, for speed."""
REPEATS = 300
PAGE = 20
_COMMON = 117
"""The rank of a word in about 2% of the incidents."""
Ask = Callable[[int], Callable[[Connection], object]]


def run(_rounds: int) -> None:
    """Measure every kind of database, at each size."""
    for kind in KINDS:
        with new_urls(kind) as new_url:
            asyncio.run(_compare(kind, new_url))


async def _compare(kind: str, new_url: NewUrl) -> None:
    small, large = [await _measure(kind, new_url, size) for size in SIZES]
    sizes = f"{SIZES[0]:,} | {SIZES[1]:,}"
    print(
        f"\n| {kind}, ms: p50, p99 | {sizes} | ratio of p50 | of p99 |\n|---|---:|---:|---:|---:|"
    )
    for name, before in small.items():
        after = large[name]
        ratios = [f"{then / now:.2f}" for now, then in zip(before, after, strict=True)]
        cells = [f"{p50:.2f}, {p99:.2f}" for p50, p99 in (before, after)]
        print(f"| {name} | {' | '.join(cells + ratios)} |", flush=True)


async def _measure(kind: str, new_url: NewUrl, size: int) -> dict[str, tuple[float, float]]:
    database = await open_new(new_url)
    await fill(database, size)
    await database.write(lambda connection: connection.execute(delete(entities)).close())
    if size == min(SIZES):
        await _measure_indexing(kind, database, size)
    else:
        while await database.write(index_batch, CHUNK):
            pass
    await database.read(settle)
    times = {name: await _times(database, ask) for name, ask in _questions(size).items()}
    await database.close()
    return times


async def _measure_indexing(kind: str, database: Database, size: int) -> None:
    begin = time.perf_counter()
    await SearchIndexer(database, SystemClock(), Notifiers()).catch_up()
    seconds = time.perf_counter() - begin
    print(f"\n{kind}: {size:,} incidents indexed, {size / seconds:,.0f} per second", flush=True)


async def _times(database: Database, ask: Ask) -> tuple[float, float]:
    """Return p50 and p99 in milliseconds."""
    taken = []
    for number in range(REPEATS + 20):
        operation = ask(number)
        begin = time.perf_counter()
        await database.read(operation)
        taken.append((time.perf_counter() - begin) * 1000)
    taken = taken[20:]
    return median(taken), quantiles(taken, n=100)[98]


def _questions(size: int) -> Mapping[str, Ask]:
    """Return the kinds of query; each number makes another query of the same kind."""
    pool = size // 2

    def some(kind: EntityKind, number: int) -> str:
        return entity_of(kind, pool // 50 + number)

    def common(number: int) -> str:
        return WORDS[_COMMON + number % 20 - 10]

    return {
        "an entity": _searching(lambda n: some(EntityKind.IP, n)),
        "an entity by its field": _searching(lambda n: f"host:{some(EntityKind.HOST, n)}"),
        "a rare word": _searching(lambda n: str(size // 2 + n)),
        "a word in 2%": _searching(common),
        "a phrase": _searching(lambda n: f'"{WORDS[3]} {WORDS[n % 20]}"'),
        "prefix of a rare word": _searching(
            lambda n: f"hash:{some(EntityKind.FILE_HASH, n)[:12]}*"
        ),
        "prefix of common words": _searching(lambda n: f"{common(n)[:5]}*"),
        "a word in 2%, and a severity": _searching(lambda n: f"{common(n)} severity:high"),
        "a severity": _searching(lambda n: f"severity:{'low' if n % 2 else 'high'}"),
        "entity lookup": _looking_up(lambda n: some(EntityKind.DOMAIN, n)),
        "entity lookup by prefix": _looking_up(lambda n: f"10.0.{n % 10}"),
        "entity lookup by part": _looking_up(lambda n: "corp.example" if n % 2 else "user1"),
    }


def _searching(text: Callable[[int], str]) -> Ask:
    return lambda number: partial(search_documents, text=text(number), limit=PAGE)


def _looking_up(text: Callable[[int], str]) -> Ask:
    return lambda number: partial(search_entities, text=text(number), limit=PAGE)
