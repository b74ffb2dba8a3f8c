"""What a worker does with what its channel says."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
import structlog
from sqlalchemy import func, select

from tocsin import CredentialsRefused, Receipt, Refused, TryLater
from tocsin.delivery.rendering import Renderer
from tocsin.delivery.routing import Route
from tocsin.delivery.worker import Router, Worker
from tocsin.events import Bell
from tocsin.store.tables import attempts, deliveries, events

from .conftest import alert


class Desk:
    """A router and a worker that are driven by hand."""

    def __init__(self, channel, database, clock) -> None:
        self.database = database
        self.clock = clock
        self.channel = channel
        self.worker = Worker(channel, Renderer([]), database)
        self.router = Router(
            [Route.of("soc", channel.settings)], [self.worker], database, clock, Bell()
        )

    async def work(self) -> None:
        """Deliver what is due now, until nothing is."""
        while await self.router.route_waiting():
            pass
        while await self.worker.claim():
            await self.worker.finish(timedelta(seconds=10))

    async def row(self, table):
        rows = await self.database.read(lambda c: list(c.execute(select(table)).mappings()))
        return rows[-1]

    async def unfinished(self) -> int:
        """Return how many events are not routed or not delivered yet."""
        queries = (
            select(func.count()).where(events.c.routed.is_(False)),
            select(func.count()).where(deliveries.c.state == "pending"),
        )
        return await self.database.read(lambda c: sum(c.scalar(query) for query in queries))

    async def state(self) -> tuple[str, int]:
        row = await self.row(deliveries)
        return row["state"], row["attempts"]


@pytest.fixture
def desk(make_channel, database, clock) -> Desk:
    return Desk(make_channel(), database, clock)


def raising(*errors: Exception):
    """Return an answer that raises each error in turn, and then accepts."""
    remaining = list(errors)

    def answer(_):
        if remaining:
            raise remaining.pop(0)
        return Receipt(status=200)

    return answer


async def test_an_event_reaches_the_channel(desk, store):
    event = alert()
    await store(event)
    await desk.work()
    [delivery] = desk.channel.deliveries
    assert (delivery.event, delivery.attempt) == (event, 1)
    assert await desk.state() == ("delivered", 1)


@pytest.mark.parametrize("error", [TryLater("busy", status=503), ValueError("a bug")])
async def test_what_may_pass_is_tried_again_on_the_schedule(desk, store, clock, error):
    desk.channel.answer = raising(error)
    await store(alert())
    await desk.work()
    assert await desk.state() == ("pending", 1)
    clock.advance(seconds=4.9)
    await desk.work()
    assert await desk.state() == ("pending", 1)
    clock.advance(seconds=0.7)
    await desk.work()
    assert await desk.state() == ("delivered", 2)


async def test_the_far_sides_own_delay_is_honoured(desk, store, clock):
    desk.channel.answer = raising(TryLater("busy", after=timedelta(hours=1)))
    await store(alert())
    await desk.work()
    due = (await desk.row(deliveries))["due_at"] - clock.now()
    assert timedelta(hours=1) <= due <= timedelta(hours=1.1)


async def test_a_delay_of_years_is_not_believed(desk, store, clock):
    desk.channel.answer = raising(TryLater("busy", after=timedelta(days=3650)))
    await store(alert())
    await desk.work()
    assert (await desk.row(deliveries))["due_at"] - clock.now() <= timedelta(hours=26.5)


@pytest.mark.parametrize("error", [Refused("no such hook"), CredentialsRefused("no")])
async def test_a_refused_delivery_is_dead_with_its_reason(desk, store, error):
    desk.channel.answer = raising(error)
    await store(alert())
    await desk.work()
    row = await desk.row(deliveries)
    assert (row["state"], row["reason"]) == ("dead", str(error))


async def test_a_delivery_is_dead_when_the_schedule_is_used_up(
    make_channel, database, store, clock
):
    desk = Desk(make_channel(retry_schedule=["1s", "2s"]), database, clock)
    desk.channel.answer = raising(*(TryLater(f"failure {n}") for n in range(9)))
    await store(alert())
    for _ in range(9):
        await desk.work()
        clock.advance(minutes=1)
    assert await desk.state() == ("dead", 3)
    assert (await desk.row(deliveries))["reason"] == "failure 2"


async def test_every_attempt_is_kept_with_what_the_far_side_said(desk, store):
    desk.channel.answer = raising(TryLater("busy", status=503, response=b"x" * 20_000))
    await store(alert())
    await desk.work()
    row = await desk.row(attempts)
    assert (row["outcome"], row["status"], row["reason"]) == ("later", 503, "busy")
    assert len(row["response"]) == 16_384


class StrangeError(Exception):
    response = object()
    status = "teapot"


@pytest.mark.parametrize(
    "mistake",
    [
        None,
        "accepted",
        StrangeError("what"),
        asyncio.CancelledError(),
        TryLater("lone \udcff and \0", response="text", after=3, status="503"),
    ],
)
async def test_a_channels_mistake_is_an_attempt_like_any_other(desk, store, clock, mistake):
    def answer(_):
        if isinstance(mistake, BaseException):
            raise mistake
        return mistake

    desk.channel.answer = answer
    await store(alert(1), alert(2))
    await desk.work()
    assert await desk.state() == ("pending", 1)
    desk.channel.answer = lambda _: Receipt(status=200, response="ok", remote_id=7)
    clock.advance(seconds=6)
    await desk.work()
    assert await desk.state() == ("delivered", 2)
    assert len(desk.channel.deliveries) == 4


async def test_what_is_given_up_at_the_end_is_due_at_once(desk, store):
    async def never(_):
        await asyncio.Event().wait()

    desk.channel.deliver = never
    await store(alert())
    await desk.router.route_waiting()
    await desk.worker.claim()
    await desk.worker.finish(timedelta(0))
    row = await desk.row(deliveries)
    assert (row["lease"], row["attempts"], row["due_at"]) == (None, 0, desk.clock.now())


async def test_an_end_in_the_middle_of_a_settlement_is_no_late_attempt(desk, store, database):
    await store(alert())
    await desk.router.route_waiting()
    await desk.worker.claim()
    while desk.worker._under_way:
        await asyncio.wait(desk.worker._under_way)
    settling = asyncio.create_task(desk.worker.settle())
    await asyncio.sleep(0)
    settling.cancel()
    await asyncio.gather(settling, return_exceptions=True)
    with structlog.testing.capture_logs() as logs:
        await desk.worker.finish(timedelta(seconds=10))
    assert not [line for line in logs if "too late" in line["event"]]
    assert await desk.state() == ("delivered", 1)


async def test_no_more_are_under_way_than_the_settings_allow(make_channel, database, store, clock):
    desk = Desk(make_channel(concurrency=3), database, clock)
    under_way, most = 0, 0

    async def deliver(_):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        return Receipt(status=200)

    desk.channel.deliver = deliver
    await store(*(alert(n) for n in range(30)))
    await desk.work()
    assert (most, await desk.unfinished()) == (3, 0)


async def test_what_waited_too_long_for_its_slot_is_left_for_later(
    make_channel, database, store, clock
):
    desk = Desk(make_channel(concurrency=1), database, clock)
    may_end = asyncio.Event()

    async def deliver(delivery):
        desk.channel.deliveries.append(delivery)
        await may_end.wait()
        return Receipt(status=200)

    desk.channel.deliver = deliver
    await store(alert(1), alert(2))
    await desk.router.route_waiting()
    assert await desk.worker.claim() == 2
    await asyncio.sleep(0)
    clock.advance(seconds=80)
    may_end.set()
    await desk.worker.finish(timedelta(seconds=10))
    assert [delivery.event.subject for delivery in desk.channel.deliveries] == ["incident:1"]
    clock.advance(seconds=10)
    await desk.work()
    assert [delivery.event.subject for delivery in desk.channel.deliveries][1:] == ["incident:2"]


async def test_an_attempt_that_ends_after_a_settlement_is_stored_too(desk, store):
    first_is_there, second_may_end = asyncio.Event(), asyncio.Event()

    async def deliver(delivery):
        if delivery.event.subject == "incident:2":
            await second_may_end.wait()
        first_is_there.set()
        return Receipt(status=200)

    desk.channel.deliver = deliver
    await store(alert(1), alert(2))
    await desk.router.route_waiting()
    await desk.worker.claim()
    await first_is_there.wait()
    await desk.worker.settle()
    second_may_end.set()
    await desk.worker.finish(timedelta(seconds=10))
    rows = await desk.database.read(lambda c: list(c.scalars(select(deliveries.c.state))))
    assert rows == ["delivered", "delivered"]


async def test_the_loops_deliver_what_arrives_while_they_run(desk, store):
    loops = [asyncio.create_task(loop) for loop in (desk.router.run(), desk.worker.run())]
    async with asyncio.timeout(30):
        for number in range(100):
            await store(alert(number))
        while await desk.unfinished():  # noqa: ASYNC110 - what is waited for is in the database
            await asyncio.sleep(0)
    for loop in loops:
        loop.cancel()
    await asyncio.gather(*loops, return_exceptions=True)
    assert len({delivery.id for delivery in desk.channel.deliveries}) == 100
    assert len(desk.channel.deliveries) == 100
