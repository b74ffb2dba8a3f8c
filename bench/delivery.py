"""Durable signed deliveries per second, from stored events to settled deliveries."""

from __future__ import annotations

import asyncio
import os
import time
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from tempfile import NamedTemporaryFile

from sqlalchemy import Connection, func, select

from bench.comparison import OURS, interleave, report_rates
from bench.databases import KINDS, NewUrl, new_urls, open_new
from bench.receiver import Request, count_received, post_all, receive
from bench.samples import fill
from bench.subprocesses import child
from tocsin.clock import SystemClock
from tocsin.delivery import (
    ChannelFactory,
    DeliveryMetrics,
    DeliveryQueue,
    Renderer,
    Router,
    WorkerPool,
    is_stored_as,
)
from tocsin.events import EVENTS as EVENTS_TOPIC
from tocsin.events import Notifier, Notifiers, parse_event_row
from tocsin.metrics import Metrics
from tocsin.node.configuration import apply_file
from tocsin.registry import Configuration, PluginFactory, load_configuration
from tocsin.store import Database
from tocsin.store.tables import deliveries, events
from tocsin_plugins.webhook.signing import SharedSecret, signature_headers

EVENTS = 2000
CONCURRENCY = 8  # a destination's default
SECRET = "whsec_" + b64encode(bytes(range(32))).decode()
PLUGINS = """
enabled = ["webhook"]

[destinations.receiver]
plugin = "webhook"
url = "{url}/hook"
secret = {{ env = "BENCH_SECRET" }}
allow_networks = ["127.0.0.1/32"]
"""
# built once, since the node's own process asks them every 20 ms; ordered, so that PostgreSQL takes
# the indexes even before it has statistics
_UNROUTED = select(events.c.id).where(events.c.routed.is_(False)).order_by(events.c.id).limit(1)
_PENDING = (
    select(deliveries.c.id)
    .where(deliveries.c.destination == "receiver", is_stored_as("pending"))
    .order_by(deliveries.c.due_at)
    .limit(1)
)


def run(rounds: int) -> None:
    """Measure every kind of database."""
    os.environ["BENCH_SECRET"] = SECRET
    for kind in KINDS:
        with child(receive) as port, new_urls(kind) as new_url:
            asyncio.run(_measure(kind, new_url, f"http://127.0.0.1:{port}", rounds))


async def _measure(kind: str, new_url: NewUrl, url: str, rounds: int) -> None:
    database = await open_new(new_url)
    async with channels(url) as (configuration, made):
        await database.write(
            apply_file,
            configuration,
            "bench",
            SystemClock().now(),
        )
        node = Deliveries(database, configuration, made)
        bare = Bare(node, url)
        rates = await interleave({OURS: node.measure, "minimal aiohttp loop": bare.measure}, rounds)
        assert await count_received(url) == 2 * EVENTS * (rounds + 1)
        assert await database.read(_delivered) == EVENTS * (rounds + 1)
    await database.close()
    report_rates(f"Deliveries of {EVENTS:,} events, {kind}", "deliveries", rates)


@asynccontextmanager
async def channels(url: str) -> AsyncIterator[tuple[Configuration, ChannelFactory]]:
    """Yield the configuration of one webhook destination, and a factory for its channel."""
    with NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(PLUGINS.format(url=url))
        file.flush()
        configuration = await load_configuration(Path(file.name))
    yield configuration, ChannelFactory(configuration, PluginFactory(SystemClock()), bytes)


class Deliveries:
    """Routes and delivers with the loops of a node."""

    def __init__(
        self, database: Database, configuration: Configuration, made: ChannelFactory
    ) -> None:
        self.database = database
        self.renderer = Renderer(configuration.template_paths)
        self._make = made.make
        self._rounds = count()

    async def measure(self) -> float:
        """Return the number of stored events that were delivered and settled per second."""
        await fill(self.database, f"round-{next(self._rounds)}", EVENTS, quiet=False)
        begin = time.perf_counter()
        async with self.running():
            await self.until_settled()
            seconds = time.perf_counter() - begin
        return EVENTS / seconds

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Notifier]:
        """Run the loops; yields the notifier for new events."""
        clock, notifiers, queue = SystemClock(), Notifiers(), DeliveryQueue(self.database)
        metrics = DeliveryMetrics(Metrics(clock), self.database, clock)
        fleet = WorkerPool(
            self._make,
            renderer=self.renderer,
            queue=queue,
            database=self.database,
            clock=clock,
            notifiers=notifiers,
            meters=metrics.meters,
        )
        await fleet.follow()
        router = Router(queue, self.database, clock, notifiers, metrics.routed, pool=fleet)
        has_joined = asyncio.Event()

        def hear(topic: str) -> None:
            has_joined.set()
            notifiers.notify_topic(topic)

        # without a connection that listens, every write would announce its topics separately
        attending = self.database.attend(1, hear)
        loops = [asyncio.create_task(loop) for loop in (router.run(), attending)]
        await has_joined.wait()
        yield notifiers[EVENTS_TOPIC]
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        await fleet.finish()

    async def until_settled(self) -> None:
        """Return when no delivery is waiting."""
        async with asyncio.timeout(60):
            while await self.database.read(_is_waiting):  # noqa: ASYNC110 - asks a database
                await asyncio.sleep(0.02)


class Bare:
    """Posts the same bytes, signed in advance, to the same receiver."""

    def __init__(self, node: Deliveries, url: str) -> None:
        self._node = node
        self._url = url

    async def measure(self) -> float:
        """Return the number of requests per second."""
        requests = await self._node.database.read(self.load_requests)
        begin = time.perf_counter()
        await post_all(f"{self._url}/hook", requests, CONCURRENCY)
        return EVENTS / (time.perf_counter() - begin)

    def load_requests(self, connection: Connection) -> list[Request]:
        """Return the latest events as signed requests."""
        rows = connection.execute(select(events).order_by(events.c.id.desc()).limit(EVENTS))
        key, now = SharedSecret.decode(SECRET), datetime.now(UTC)
        requests = []
        for event in map(parse_event_row, rows.mappings()):
            body = self._node.renderer.render("envelope", event)
            headers = signature_headers([key], event.id, now, body)
            requests.append(({"content-type": "application/json", **headers}, body))
        return requests


def _is_waiting(connection: Connection) -> bool:
    return any(connection.execute(query).first() for query in (_UNROUTED, _PENDING))


def _delivered(connection: Connection) -> int:
    query = select(func.count()).where(deliveries.c.state == "delivered")
    return int(connection.execute(query).scalar_one())
