"""A node's workers follow the destinations in the database."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from tocsin.delivery.destinations.channels import ObserverChannel
from tocsin.delivery.destinations.lifecycle import (
    change_destination,
    delete_destination,
    disable_destination,
    resume_destination,
)
from tocsin.delivery.metrics.meters import DeliveryMetrics
from tocsin.delivery.queue.queue import DeliveryQueue
from tocsin.delivery.rendering import Renderer
from tocsin.delivery.routing.router import Router
from tocsin.delivery.sending.worker_pool import WorkerPool
from tocsin.events import Notifiers
from tocsin.metrics import Metrics
from tocsin.registry import LivePlugin, ManagedBy
from tocsin.store.tables import deliveries

from .conftest import add, alert, destination


class Workshop:
    """Makes obedient channels, and remembers them."""

    def __init__(self, make_channel) -> None:
        self._make_channel = make_channel
        self.made = []
        self.closed = 0
        self.error: Exception | None = None

    async def make(self, wanted):
        if self.error is not None:
            raise self.error
        channel = self._make_channel(wanted.name)
        self.made.append(channel)
        return LivePlugin(channel, self)

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture
def workshop(make_channel) -> Workshop:
    return Workshop(make_channel)


@pytest.fixture
def notifiers() -> Notifiers:
    return Notifiers()


def make_router(database, clock, notifiers) -> Router:
    metrics = DeliveryMetrics(Metrics(clock), database, clock)
    return Router(DeliveryQueue(database), database, clock, notifiers, metrics.routed)


@pytest.fixture
async def fleet(workshop, database, clock, notifiers):
    fleet = WorkerPool(
        workshop.make,
        renderer=Renderer([]),
        queue=DeliveryQueue(database),
        database=database,
        clock=clock,
        notifiers=notifiers,
        meters=DeliveryMetrics(Metrics(clock), database, clock).meters,
    )
    yield fleet
    await fleet.finish()


@pytest.fixture
def deliver_all(fleet, database, clock, notifiers):
    """Route what was stored, and return when nothing is pending or on hold."""

    async def deliver(*names: str) -> None:
        await make_router(database, clock, notifiers).route_waiting()
        async with asyncio.timeout(20):
            while await database.read(_waits_for, names):  # noqa: ASYNC110 - asks a database
                await asyncio.sleep(0.01)

    return deliver


def _waits_for(connection, names):
    query = select(deliveries.c.id).where(
        deliveries.c.state == "pending", deliveries.c.destination.in_(names)
    )
    return connection.execute(query.limit(1)).first()


async def test_every_destination_gets_a_worker_of_its_own(
    fleet, workshop, database, store, deliver_all
):
    await add(database, destination("a"))
    await add(database, destination("b"))
    await fleet.follow()
    await store(alert())
    await deliver_all("a", "b")
    assert fleet.running == ["a", "b"]
    assert [len(channel.deliveries) for channel in workshop.made] == [1, 1]


async def test_idle_destinations_cost_one_query_and_no_transaction(fleet, database, monkeypatch):
    for number in range(20):
        await add(database, destination(f"d{number}"))
    await fleet.look()
    assert len(fleet.running) == 20
    calls = []

    def count(name: str) -> None:
        run = getattr(database, name)

        async def counted(operation, *arguments, **options):
            calls.append((name, operation.__name__))
            return await run(operation, *arguments, **options)

        monkeypatch.setattr(database, name, counted)

    for running in fleet._running.values():
        await running.worker.claim()
    for name in ("write", "write_behind", "read"):
        count(name)
    for running in fleet._running.values():
        await running.worker.claim()
    await fleet.look()
    assert {name for name, _ in calls} == {"read"}
    assert [call for call in calls if call == ("read", "load_overview")] == [calls[-1]]


async def test_a_delivery_is_claimed_once_it_is_due(fleet, workshop, database, store, clock):
    await add(database, destination())
    await fleet.look()
    await store(alert())
    await make_router(database, clock, Notifiers()).route_waiting()
    await database.write(
        lambda c: c.execute(update(deliveries).values(due_at=clock.now() + timedelta(minutes=1)))
    )
    await fleet.look()
    assert workshop.made[0].deliveries == []
    clock.advance(minutes=1)
    await fleet.look()
    async with asyncio.timeout(5):
        while not workshop.made[0].deliveries:  # noqa: ASYNC110 - the worker tells nobody
            await asyncio.sleep(0.01)


async def test_a_new_revision_gets_a_new_worker(fleet, workshop, database, store, deliver_all):
    made = await add(database, destination())
    await fleet.follow()
    await database.write(change_destination, made, made.updated_at)
    await fleet.follow()
    await store(alert())
    await deliver_all("soc")
    assert [len(channel.deliveries) for channel in workshop.made] == [0, 1]


async def test_what_comes_for_a_disabled_destination_waits_until_it_is_resumed(
    fleet, workshop, database, store, deliver_all
):
    made = await add(database, destination())
    await fleet.follow()
    stopped = await database.write(disable_destination, made, made.updated_at)
    await fleet.follow()
    await asyncio.gather(*fleet._ending)
    await store(alert())
    await deliver_all()
    assert (fleet.running, workshop.made[0].deliveries) == ([], [])
    await database.write(resume_destination, stopped, stopped.updated_at)
    await fleet.follow()
    await deliver_all("soc")
    assert len(workshop.made[1].deliveries) == 1


async def test_what_waits_for_a_deleted_destination_is_dead_with_that_reason(
    fleet, database, store, deliver_all, clock
):
    made = await add(database, destination())
    await store(alert())
    await deliver_all()
    await database.write(delete_destination, made, clock.now())
    row = await database.read(lambda c: c.execute(select(deliveries)).mappings().one())
    assert (row["state"], row["reason"]) == ("dead", "its destination was deleted")


async def test_a_destination_that_cannot_be_served_costs_no_other_and_is_tried_again(
    fleet, workshop, database, clock
):
    await add(database, destination("a"))
    workshop.error = RuntimeError("no such device")
    await fleet.follow()
    assert (fleet.running, dict(fleet.absent)) == ([], {"a": "no such device"})
    workshop.error = None
    await add(database, destination("b"))
    await fleet.follow()
    assert fleet.running == ["b"]
    clock.advance(minutes=1)
    await fleet.follow()
    assert (fleet.running, dict(fleet.absent)) == (["a", "b"], {})


async def test_a_destination_that_is_mended_is_served_at_once(fleet, workshop, database, clock):
    made = await add(database, destination())
    workshop.error = RuntimeError("no such device")
    await fleet.follow()
    workshop.error = None
    await database.write(change_destination, replace(made, settings={"mended": True}), clock.now())
    await fleet.follow()
    assert fleet.running == ["soc"]


async def test_connections_are_closed_at_the_end(fleet, workshop, database):
    await add(database, destination("a"))
    await fleet.follow()
    await fleet.finish()
    assert (fleet.running, workshop.closed) == ([], 1)


async def observe(fleet_parts, hook):
    database, clock, notifiers = fleet_parts
    made = await add(
        database, destination("hook:watcher", plugin="watcher", managed_by=ManagedBy.PLUGIN)
    )

    async def make(_):
        from tocsin import Tools

        tools = Tools(name=made.name, http=None, clock=clock, log=None)
        settings = ObserverChannel.Settings(plugin="watcher")
        return LivePlugin(ObserverChannel(settings, tools, {"tocsin_event": hook}), Nothing())

    queue = DeliveryQueue(database)
    return WorkerPool(
        make,
        renderer=Renderer([]),
        queue=queue,
        database=database,
        clock=clock,
        notifiers=notifiers,
        meters=DeliveryMetrics(Metrics(clock), database, clock).meters,
    )


class Nothing:
    async def close(self) -> None:
        pass


async def test_a_plugin_hears_of_every_event_and_again_of_one_that_it_failed_at(
    database, store, deliver_all, clock, notifiers
):
    heard = []

    async def hook(event):
        heard.append(event)
        if len(heard) == 1:
            raise RuntimeError("not now")

    fleet = await observe((database, clock, notifiers), hook)
    events = [alert(1, severity="Informational"), alert(2)]
    await store(*events)
    await fleet.follow()
    await make_router(database, clock, notifiers).route_waiting()
    await fleet.look()
    async with asyncio.timeout(20):
        while len(heard) < 2:  # noqa: ASYNC110 - another task is waited for
            await asyncio.sleep(0.01)
    while await database.read(_has_no_attempt):  # noqa: ASYNC110 - asks a database
        await asyncio.sleep(0.01)
    clock.advance(seconds=6)
    await fleet.look()
    await deliver_all("hook:watcher")
    await fleet.finish()
    assert sorted(event.id for event in heard[1:]) == sorted(event.id for event in events)


def _has_no_attempt(connection):
    query = select(deliveries.c.id).where(deliveries.c.attempts == 0)
    return connection.execute(query.limit(1)).first()
