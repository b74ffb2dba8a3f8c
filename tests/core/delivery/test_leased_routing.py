"""Routing leases new deliveries to the free workers of its node."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from operator import attrgetter

import pytest
from sqlalchemy import insert, select

from tocsin import Event
from tocsin.delivery.health.breaker import HealthStatus
from tocsin.delivery.metrics.meters import DeliveryMetrics
from tocsin.delivery.queue.queue import HEARTBEAT, DeliveryQueue
from tocsin.delivery.rendering import Renderer
from tocsin.delivery.routing import router
from tocsin.delivery.routing.plan import Routes, RoutingResult
from tocsin.delivery.routing.router import Router, route_events
from tocsin.delivery.sending.worker_pool import WorkerPool
from tocsin.events import Notifiers, emit_events
from tocsin.metrics import Metrics
from tocsin.registry import LivePlugin
from tocsin.store import LEASE_DURATION
from tocsin.store.tables import deliveries, remote_objects

from .conftest import add, alert, destination


class Node:
    """A router and a pool of workers; records for which destinations deliveries are claimed."""

    def __init__(self, make_channel, database, clock) -> None:
        self._make_channel = make_channel
        self.database, self.clock, self.notifiers = database, clock, Notifiers()
        self.settings = {}
        self.deliveries = []
        self.claimed = []
        queue, metrics = DeliveryQueue(database), DeliveryMetrics(Metrics(clock), database, clock)
        self._claim, queue.claim = queue.claim, self._record_claim
        self.pool = WorkerPool(
            self._make,
            renderer=Renderer([]),
            queue=queue,
            database=database,
            clock=clock,
            notifiers=self.notifiers,
            meters=metrics.meters,
        )
        self.router = Router(queue, database, clock, self.notifiers, metrics.routed, pool=self.pool)

    async def _make(self, wanted) -> LivePlugin:
        channel = self._make_channel(wanted.name, **self.settings)
        channel.deliveries = self.deliveries
        return LivePlugin(channel, self)

    async def close(self) -> None:
        """Close a channel."""

    async def _record_claim(self, name, *args, **members):
        found = await self._claim(name, *args, **members)
        self.claimed += [claimed.event for claimed in found]
        return found

    async def start(self, settings=None, **members) -> None:
        """Serve one destination."""
        self.settings = settings or {}
        await add(self.database, destination("a", **members))
        await self.pool.follow()

    async def store(self, *events: Event) -> None:
        await self.database.write(emit_events, events)

    async def rows(self) -> list:
        return await self.database.read(
            lambda c: c.execute(select(deliveries).order_by(deliveries.c.id)).mappings().all()
        )

    async def until_delivered(self) -> None:
        async with asyncio.timeout(20):
            while any(  # noqa: ASYNC110 - asks a database
                row["state"] != "delivered" for row in await self.rows()
            ):
                await asyncio.sleep(0.01)

    def after_commit(self, action) -> None:
        """Run an action between the commit that leases deliveries and their start."""
        write = self.database.write

        async def write_then_act(operation, *args, **members):
            result = await write(operation, *args, **members)
            if isinstance(result, RoutingResult):
                await action()
            return result

        self.database.write = write_then_act


@pytest.fixture
async def node(make_channel, database, clock):
    node = Node(make_channel, database, clock)
    yield node
    await node.pool.finish()


async def test_new_events_reach_a_free_worker_without_a_claim(node):
    await node.start()
    events = [alert(number) for number in range(3)]
    await node.store(*events)
    assert await node.router.route_waiting() == 3
    await node.until_delivered()
    assert sorted((made.event for made in node.deliveries), key=attrgetter("id")) == events
    assert {row["attempts"] for row in await node.rows()} == {1}
    assert node.claimed == []


async def test_what_exceeds_the_vacancy_is_claimed(node):
    await node.start({"concurrency": 1})
    events = [alert(number) for number in range(12)]
    await node.store(*events)
    await node.router.route_waiting()
    await node.until_delivered()
    assert node.claimed == events[8:]


@pytest.mark.parametrize(("count", "queued"), [(8, set()), (9, {"a"})])
async def test_a_worker_looks_for_deliveries_if_routing_leaves_it_some(node, count, queued):
    await node.start({"concurrency": 1})
    await node.store(*(alert(number) for number in range(count)))
    found = await route_events(
        node.database,
        DeliveryQueue(node.database),
        Routes(),
        most=count,
        now=node.clock.now(),
        workers=node.pool.find_free(),
    )
    assert (len(found.leased["a"]), found.queued) == (8, queued)


async def store_object(node) -> None:
    """Store the remote object of an earlier event."""
    known = {"destination": "a", "subject": "incident:1", "remote_id": "T-1", "home": ""}
    row = {**known, "event_id": "evt_0", "updated_at": node.clock.now()}
    await node.database.write(lambda connection: connection.execute(insert(remote_objects), row))


@pytest.mark.parametrize(
    ("settings", "members", "prepare"),
    [
        ({"ordered": True}, {}, None),
        ({"rate_limit": 6_000}, {}, None),
        ({}, {"health": HealthStatus(held_until=datetime(2026, 11, 1, tzinfo=UTC))}, None),
        ({}, {}, store_object),
    ],
    ids=["ordered", "rated", "held", "with-objects"],
)
async def test_where_a_claim_decides_more_it_is_made(node, settings, members, prepare):
    await node.start(settings, **members)
    if prepare is not None:
        await prepare(node)
    event = alert()
    await node.store(event)
    await node.router.route_waiting()
    await node.pool.look()
    await node.until_delivered()
    assert event in node.claimed


async def test_deliveries_leased_to_a_worker_that_has_ended_are_due_at_once(node):
    await node.start()
    await node.store(alert())
    node.after_commit(node.pool.finish)
    await node.router.route_waiting()
    [row] = await node.rows()
    assert (row["lease"], row["attempts"], row["begun_by"]) == (None, 0, None)
    assert row["due_at"] == node.clock.now()


async def test_routing_that_is_cancelled_begins_what_it_leased(node):
    await node.start()
    await node.store(alert())
    routing = asyncio.create_task(node.router.route_waiting())

    async def cancel() -> None:
        routing.cancel()
        await asyncio.sleep(0)

    node.after_commit(cancel)
    with pytest.raises(asyncio.CancelledError):
        await routing
    await node.until_delivered()
    assert len(node.deliveries) == 1


async def test_routing_waits_for_the_room_of_busy_workers(node, monkeypatch):
    """A backlog is not queued for claims while its receiver keeps up."""
    monkeypatch.setattr(router, "_VACANCY_PATIENCE", timedelta(seconds=20))
    await node.start()
    events = [alert(number) for number in range(150)]
    await node.store(*events)
    while await node.router.route_waiting():
        pass
    await node.until_delivered()
    assert node.claimed == []


async def test_routing_leases_again_once_what_was_queued_is_claimed(node, monkeypatch):
    monkeypatch.setattr(router, "_VACANCY_PATIENCE", timedelta(seconds=20))
    await node.start({"concurrency": 1})
    events = [alert(number) for number in range(20)]
    for some in (events[:12], events[12:17], events[17:]):
        await node.store(*some)
        await node.router.route_waiting()
    await node.until_delivered()
    assert node.claimed == events[8:12]


async def test_a_lease_from_routing_expires_as_that_of_a_claim(node):
    await node.start()
    await node.store(alert())
    leases = []

    async def look_at_row() -> None:
        [row] = await node.rows()
        leases.append((row["due_at"] - node.clock.now(), row["begun_by"] - node.clock.now()))

    node.after_commit(look_at_row)
    await node.router.route_waiting()
    assert leases == [(LEASE_DURATION, HEARTBEAT)]
