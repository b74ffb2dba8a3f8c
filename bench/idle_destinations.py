"""Destinations without work or with receivers that are away: processor time and intake."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import NamedTemporaryFile
from typing import Any

from sqlalchemy import update

from bench.databases import KINDS, NewUrl, new_urls, open_new
from bench.delivery import SECRET
from bench.samples import fill
from tocsin.clock import SystemClock
from tocsin.delivery import (
    ChannelFactory,
    DeliveryMetrics,
    DeliveryQueue,
    Renderer,
    Router,
    WorkerPool,
)
from tocsin.events import EVENTS, Notifiers
from tocsin.metrics import Metrics
from tocsin.node.configuration import apply_file
from tocsin.registry import PluginFactory, load_configuration
from tocsin.store import Database
from tocsin.store.tables import destinations

DESTINATIONS = (1, 1_000)
AWAY = 900
SECONDS = 10
PUSHES = 20
_STARTING = 0.1  # of a core; a node whose workers have all started takes less
_REFUSED = "http://127.0.0.1:9/hook"  # the discard port, where nothing listens
_BLOCK = """
[destinations.d{place}]
plugin = "webhook"
url = "{url}"
secret = {{ env = "BENCH_SECRET" }}
allow_networks = ["127.0.0.1/32"]
"""


def run(rounds: int) -> None:
    """Measure every kind of database; `rounds` is not used, since the time is fixed."""
    del rounds
    for kind in KINDS:
        with new_urls(kind) as new_url:
            for number in DESTINATIONS:
                asyncio.run(_measure_idle(kind, new_url, number))
            for away in (0, AWAY):
                asyncio.run(_measure_intake(kind, new_url, away))


async def _measure_idle(kind: str, new_url: NewUrl, number: int) -> None:
    async with _node(await open_new(new_url), number) as (database, _):
        writes, began = _count_writes(database), time.process_time()
        await asyncio.sleep(SECONDS)
        share = (time.process_time() - began) / SECONDS
        print(
            f"{kind}, {number:,} idle destinations: {share:.1%} of a core, "
            f"{next(writes) / SECONDS:.1f} transactions/s",
            flush=True,
        )


async def _measure_intake(kind: str, new_url: NewUrl, away: int) -> None:
    """Store incidents one by one, each of which alerts every destination."""
    node = _node(await open_new(new_url), max(away, 1), is_paused=bool(away))
    async with node as (database, notifiers):
        times = []
        for number in range(PUSHES):
            begin = time.perf_counter()
            await fill(database, f"push-{number}", 1, quiet=not away)
            times.append(time.perf_counter() - begin)
            notifiers[EVENTS].notify()
            await asyncio.sleep(0.1)
        print(
            f"{kind}, {away} receivers away: an incident is stored in "
            f"{median(times) * 1000:.0f} ms, at most {max(times) * 1000:.0f} ms",
            flush=True,
        )


def _count_writes(database: Any) -> count[int]:
    """Count the transactions from now on; the next value of the result is their number."""
    numbers = count()
    for name in ("write", "write_behind"):
        if hasattr(database, name):
            setattr(database, name, _counted(getattr(database, name), numbers))
    return numbers


def _counted(write: Any, numbers: count[int]) -> Any:
    async def counted(*arguments: Any, **options: Any) -> Any:
        next(numbers)
        return await write(*arguments, **options)

    return counted


@asynccontextmanager
async def _node(
    database: Database, number: int, *, is_paused: bool = False
) -> AsyncIterator[tuple[Database, Notifiers]]:
    """Run the delivery of a node with so many webhooks, paused or without work."""
    clock, notifiers = SystemClock(), Notifiers()
    os.environ["BENCH_SECRET"] = SECRET
    with NamedTemporaryFile("w", suffix=".toml") as file:
        blocks = (_BLOCK.format(place=place, url=_REFUSED) for place in range(number))
        file.write("\n".join(['enabled = ["webhook"]', *blocks]))
        file.flush()
        configuration = await load_configuration(Path(file.name))
    await database.write(apply_file, configuration, "bench", clock.now())
    if is_paused:
        held = {"state": "paused", "held_until": clock.now() + timedelta(hours=1)}
        await database.write(
            lambda connection: connection.execute(update(destinations).values(held))
        )
    channels = ChannelFactory(configuration, PluginFactory(clock), bytes)
    queue, metrics = DeliveryQueue(database), DeliveryMetrics(Metrics(clock), database, clock)
    pool = WorkerPool(
        channels.make,
        renderer=Renderer(configuration.template_paths),
        queue=queue,
        database=database,
        clock=clock,
        notifiers=notifiers,
        meters=metrics.meters,
    )
    router = Router(queue, database, clock, notifiers, metrics.routed, pool=pool)
    await pool.follow()
    loops = [asyncio.create_task(loop) for loop in (pool.run(), router.run())]
    await _settle()
    yield database, notifiers
    for loop in loops:
        loop.cancel()
    await asyncio.gather(*loops, return_exceptions=True)
    await pool.finish()
    await database.close()


async def _settle() -> None:
    """Return once every worker has started: when the process has been idle for a second."""
    share = 1.0
    while share > _STARTING:
        began = time.process_time()
        await asyncio.sleep(1)
        share = time.process_time() - began
