"""A clock that jumps, in the middle of leases, retries, pauses and rate limits."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
import structlog
from sqlalchemy import func, select

from tocsin import Channel, Delivery, Event, EventType, Health, Receipt, Tools, TryLater
from tocsin.delivery import DeliveryMetrics, DeliveryQueue, Renderer, Router, load_destination
from tocsin.delivery.destinations.repository import (
    Destination,
    DestinationState,
    destination_to_row,
)
from tocsin.delivery.queue.states import queue_topic
from tocsin.delivery.sending.worker import Worker
from tocsin.events import Notifiers, emit_events
from tocsin.identifiers import new_id
from tocsin.metrics import Metrics
from tocsin.registry import ManagedBy
from tocsin.store.tables import attempts, deliveries, destinations
from workers import flush

from .conftest import account
from .oracle import Arrival, Oracle


class Recording(Channel):
    """Tells the oracle of every attempt; waits for `goes_on`, then fails while `fails` says so."""

    def __init__(self, settings: Channel.Settings, tools: Tools, oracle: Oracle) -> None:
        super().__init__(settings, tools)
        self._oracle = oracle
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self.fails = lambda: False

    async def check(self) -> Health:
        return Health(detail="recording")

    async def deliver(self, delivery: Delivery) -> Receipt:
        arrival = Arrival("soc", delivery.event.id, self.tools.clock.now())
        self._oracle.arrivals.append(arrival)
        await self.goes_on.wait()
        if self.fails():
            raise TryLater("down", status=500)
        arrival.is_accepted = True
        return Receipt(status=204)


class Desk:
    """One node's router and worker, driven by hand."""

    def __init__(self, oracle, database, clock, **settings) -> None:
        self.database, self.clock = database, clock
        tools = Tools(name="soc", http=None, clock=clock, log=structlog.get_logger())
        wanted = Recording.Settings(plugin="recording", **settings)
        self.channel = Recording(wanted, tools, oracle)
        oracle.schedules["soc"] = wanted.retry_schedule
        notifiers, queue = Notifiers(), DeliveryQueue(database)
        metrics = DeliveryMetrics(Metrics(clock), database, clock)
        self.router = Router(queue, database, clock, notifiers, metrics.routed)
        self.worker = Worker(
            self.destination,
            self.channel,
            renderer=Renderer([]),
            queue=queue,
            database=database,
            notifier=notifiers[queue_topic("soc")],
            vacancy_notifier=notifiers["vacancies"],
            meter=metrics.meters.of("soc"),
        )

    @property
    def destination(self) -> Destination:
        now = self.clock.now()
        facts = {"plugin": "recording", "managed_by": ManagedBy.FILE, "settings": {}}
        made = {"created_by": "file", "created_at": now, "updated_at": now}
        return Destination(name="soc", **facts, **made)

    async def emit(self, count: int = 1) -> None:
        happened = [
            Event(
                id=new_id("evt"),
                event_type=EventType.INCIDENT_ALERT,
                timestamp=self.clock.now(),
                data={"incident_number": number, "severity": "High", "provider": "edge"},
                subject=f"incident:{number}",
            )
            for number in range(count)
        ]
        await self.database.write(emit_events, happened)
        await self.router.route_waiting()

    async def begin(self) -> None:
        """Claim what is due, and begin to deliver it."""
        await self.worker.claim()
        await asyncio.sleep(0)

    async def work(self) -> None:
        """Deliver what is due now, until nothing is."""
        while await self.worker.claim():
            await flush(self.worker)

    async def count(self, *where) -> int:
        query = select(func.count()).select_from(deliveries).where(*where)
        return await self.database.read(lambda connection: connection.scalar(query))


@pytest.fixture
def oracle() -> Oracle:
    return Oracle()


@pytest.fixture
def make_desk(oracle, database, clock):
    async def make(**settings) -> Desk:
        desk = Desk(oracle, database, clock, **settings)
        row = destination_to_row(desk.destination)
        await database.write(lambda c: c.execute(destinations.insert().values(row)))
        return desk

    return make


async def test_a_jump_over_the_end_of_leases_repeats_what_was_under_way_and_records_it_once(
    make_desk, database, clock, oracle
):
    first = await make_desk()
    second = Desk(oracle, database, clock)
    first.channel.goes_on.clear()
    await first.emit(3)
    await first.begin()
    clock.advance(hours=1)
    oracle.breaks.append(clock.now())
    await second.work()
    first.channel.goes_on.set()
    await flush(first.worker)
    await account(database, oracle, clock)
    assert (len(oracle.arrivals), oracle.repeats()) == (6, 3)
    recorded = await database.read(lambda c: list(c.scalars(select(attempts.c.number))))
    assert recorded == [1, 1, 1]


async def test_a_jump_back_lets_nobody_else_take_what_is_under_way(
    make_desk, database, clock, oracle
):
    first = await make_desk()
    second = Desk(oracle, database, clock)
    first.channel.goes_on.clear()
    await first.emit(3)
    await first.begin()
    clock.advance(hours=-1)
    await second.work()
    first.channel.goes_on.set()
    await flush(first.worker)
    clock.advance(hours=1)
    await account(database, oracle, clock)
    assert (len(oracle.arrivals), oracle.repeats()) == (3, 0)


async def test_after_a_jump_back_what_is_new_goes_out_and_a_retry_keeps_its_moment(
    make_desk, database, clock, oracle
):
    desk = await make_desk(retry_schedule=["5s"])
    desk.channel.fails = lambda: True
    await desk.emit()
    await desk.work()
    desk.channel.fails = lambda: False
    clock.advance(hours=-1)
    await desk.emit()
    await desk.work()
    assert await desk.count(deliveries.c.state == "delivered") == 1
    clock.advance(hours=1, seconds=6)
    await desk.work()
    await account(database, oracle, clock)
    assert len(oracle.arrivals) == 3


async def test_a_jump_forward_alone_pauses_nothing(make_desk, database, clock, oracle):
    desk = await make_desk(retry_schedule=["5s"] * 9, pause_after="1m", pause_after_failures=5)
    desk.channel.fails = lambda: True
    await desk.emit()
    for _ in range(4):
        await desk.work()
        clock.advance(hours=1)
    assert (await database.read(load_destination, "soc")).state is DestinationState.ACTIVE
    desk.channel.fails = lambda: False
    await desk.work()
    await account(database, oracle, clock)


async def test_an_hour_saves_no_more_turns_than_a_second(make_desk, database, clock, oracle):
    desk = await make_desk(rate_limit=60)
    await desk.emit(5)
    for hours in (0, 1, -1, 1, 1, 1, 1):
        clock.advance(hours=hours)
        before = len(oracle.arrivals)
        await desk.work()
        assert len(oracle.arrivals) - before <= 1
    await account(database, oracle, clock)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 50))]
)
async def test_any_course_of_jumps_loses_nothing_and_makes_no_storm(
    make_desk, database, clock, oracle, seed
):
    chance = Random(seed)
    desk = await make_desk(
        retry_schedule=["5s", "1m", "10m"],
        rate_limit=60,
        pause_after="1000h",  # probes keep no schedule
    )
    desk.channel.fails = lambda: chance.random() < 0.5

    async def work() -> None:
        before = len(oracle.arrivals)
        await desk.work()
        assert len(oracle.arrivals) - before <= 1

    for _ in range(40):
        await desk.emit(chance.randrange(2))
        clock.advance(seconds=chance.choice((1, 5, 60, 600, 3600, -60, -3600)))
        await work()
    async with asyncio.timeout(60):
        while await desk.count(deliveries.c.state == "pending"):
            clock.advance(minutes=10)
            await work()
    await account(database, oracle, clock)
