"""What a worker does with what its channel says."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from http import HTTPStatus
from itertools import pairwise

import pytest
import structlog
from sqlalchemy import func, select

from tocsin import CredentialsRefused, Misconfigured, Receipt, Refused, TryLater
from tocsin.delivery.destinations.repository import (
    Destination,
    DestinationState,
    StopReason,
    load_destination,
)
from tocsin.delivery.metrics.meters import DeliveryMetrics
from tocsin.delivery.queue.queue import DeliveryQueue
from tocsin.delivery.queue.states import queue_topic
from tocsin.delivery.rendering import Renderer
from tocsin.delivery.routing.router import Router
from tocsin.delivery.sending.worker import AHEAD, Worker
from tocsin.events import Notifiers
from tocsin.metrics import Metrics
from tocsin.store.tables import attempts, audit, deliveries, events
from workers import flush

from .conftest import add, alert, destination


class Desk:
    """A router and a worker that are driven by hand."""

    def __init__(self, channel, database, clock) -> None:
        self.database = database
        self.clock = clock
        self.channel = channel
        self.notifiers = Notifiers()
        self.queue = DeliveryQueue(database)
        self.metrics = DeliveryMetrics(Metrics(clock), database, clock)
        self.router = Router(self.queue, database, clock, self.notifiers, self.metrics.routed)
        self.hire(destination())

    def hire(self, served: Destination) -> None:
        """Begin with a new worker."""
        self.worker = Worker(
            served,
            self.channel,
            renderer=Renderer([]),
            queue=self.queue,
            database=self.database,
            notifier=self.notifiers[queue_topic(served.name)],
            vacancy_notifier=self.notifiers["vacancies"],
            meter=self.metrics.meters.of(served.name),
        )

    async def work(self) -> None:
        """Deliver what is due now, until nothing is."""
        while await self.router.route_waiting():
            pass
        while await self.worker.claim():
            await flush(self.worker)

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
def make_desk(make_channel, database, clock):
    async def make(**settings) -> Desk:
        await add(database, destination())
        return Desk(make_channel(**settings), database, clock)

    return make


@pytest.fixture
async def desk(make_desk) -> Desk:
    return await make_desk()


def raising(*errors: Exception):
    """Return an answer that raises each error in turn, and then accepts."""
    remaining = list(errors)

    def answer(_):
        if remaining:
            raise remaining.pop(0)
        return Receipt(status=200)

    return answer


@pytest.mark.parametrize("ordered", [False, True])
async def test_an_idle_worker_looks_for_deliveries_once(make_desk, ordered):
    desk = await make_desk(ordered=ordered)
    looks = []
    has_claimable = desk.queue.has_claimable

    async def look(*args, **members) -> bool:
        looks.append(await has_claimable(*args, **members))
        return looks[-1]

    desk.queue.has_claimable = look
    working = asyncio.create_task(desk.worker.run())
    while not looks:  # noqa: ASYNC110 - of another task
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    assert looks == [False]


async def test_routing_leases_again_to_a_worker_that_another_node_outran(desk, store):
    claim = desk.queue.claim

    async def claim_second(*args, **members):
        await claim(*args, **members)
        return await claim(*args, **members)

    desk.queue.claim = claim_second
    await store(alert())
    await desk.router.route_waiting()
    assert await desk.worker.claim() == 0
    assert desk.worker.vacancy is not None


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


@pytest.mark.parametrize("error", [Refused("no such hook")])
async def test_a_refused_delivery_is_dead_with_its_reason(desk, store, error):
    desk.channel.answer = raising(error)
    await store(alert())
    await desk.work()
    row = await desk.row(deliveries)
    assert (row["state"], row["reason"]) == ("dead", str(error))


async def test_a_delivery_is_dead_when_the_schedule_is_used_up(make_desk, store, clock):
    desk = await make_desk(retry_schedule=["1s", "2s"])
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
    ("told", "kept"),
    [
        ("https://soar.example.com/case/7", "https://soar.example.com/case/7"),
        ("http://soar.example.com/case/7", "http://soar.example.com/case/7"),
        ("javascript:alert(1)", None),
        ("data:text/html,<script>alert(1)</script>", None),
        ("//soar.example.com/case/7", None),
        ("https://soar.example.com/a case", None),
        ("https://soar.example.com/\n", None),
        (f"https://soar.example.com/{'x' * 2_000}", None),
        (None, None),
    ],
)
async def test_only_a_link_that_can_be_followed_is_kept(desk, store, told, kept):
    desk.channel.answer = lambda _: Receipt(status=200, remote_id="7", remote_url=told)
    await store(alert())
    await desk.work()
    row = await desk.row(deliveries)
    assert (row["remote_id"], row["remote_url"]) == ("7", kept)


async def test_the_log_shows_a_status_as_its_number(desk, store):
    desk.channel.answer = lambda _: Receipt(status=HTTPStatus.CREATED)
    await store(alert())
    with structlog.testing.capture_logs() as logs:
        await desk.work()
    assert [repr(log["status"]) for log in logs if log["event"] == "delivered"] == ["201"]


@pytest.mark.parametrize(
    "mistake",
    [
        None,
        "accepted",
        Receipt(status=200, response="text"),
        Receipt(status=200, remote_id=7),
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
    desk.channel.answer = lambda _: Receipt(status=200, response=b"ok", remote_id="7")
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


async def test_no_more_are_under_way_than_the_settings_allow(make_desk, store):
    desk = await make_desk(concurrency=3)
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


async def test_what_waited_too_long_for_its_slot_is_left_for_later(make_desk, store, clock):
    desk = await make_desk(concurrency=1)
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
    await flush(desk.worker)
    assert [delivery.event.subject for delivery in desk.channel.deliveries] == ["incident:1"]
    clock.advance(seconds=10)
    await desk.work()
    assert [delivery.event.subject for delivery in desk.channel.deliveries][1:] == ["incident:2"]


@pytest.mark.parametrize(("seconds", "claimed"), [(0, 100), (10, 64)])
async def test_more_is_claimed_for_a_receiver_that_responds_fast(
    desk, store, clock, seconds, claimed
):
    desk.channel.answer = lambda _: clock.advance(seconds=seconds) or Receipt(status=200)
    await store(alert())
    await desk.work()
    await store(*map(alert, range(2, 102)))
    await desk.router.route_waiting()
    assert await desk.worker.claim() == claimed
    desk.channel.answer = lambda _: Receipt(status=200)
    await flush(desk.worker)


async def test_attempts_wait_if_too_many_results_are_not_stored(desk, store):
    await store(alert())
    await desk.work()
    await store(*map(alert, range(2, 102)))
    await desk.router.route_waiting()
    assert await desk.worker.claim() == 100
    for _ in range(1_000):
        await asyncio.sleep(0)
    assert len(desk.channel.deliveries) == 1 + 8 * AHEAD
    await flush(desk.worker)
    assert len(desk.channel.deliveries) == 101
    assert await desk.unfinished() == 0


async def test_results_are_stored_at_once_when_attempts_wait_for_them(desk, store, monkeypatch):
    monkeypatch.setattr("tocsin.delivery.sending.worker.LINGER", 60)
    await store(alert())
    await desk.work()
    await store(*map(alert, range(2, 102)))
    await desk.router.route_waiting()
    assert await desk.worker.claim() == 100
    loop = asyncio.create_task(desk.worker.run())
    async with asyncio.timeout(30):
        while len(desk.channel.deliveries) < 101:  # noqa: ASYNC110 - counts attempts
            await asyncio.sleep(0.01)
    loop.cancel()
    await asyncio.gather(loop, return_exceptions=True)
    await flush(desk.worker)
    assert await desk.unfinished() == 0


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
    await flush(desk.worker)
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


@pytest.mark.parametrize("error", [Misconfigured("line 3"), CredentialsRefused("no")])
async def test_what_the_configuration_does_not_allow_is_on_hold(desk, store, error):
    desk.channel.answer = raising(error)
    await store(alert())
    await desk.work()
    row = await desk.row(deliveries)
    assert (row["state"], row["attempts"], row["reason"]) == ("on_hold", 1, str(error))


async def standing(desk):
    found = await desk.database.read(load_destination, "soc")
    return found.state, found.reason


async def fail(desk, clock, times, **pause):
    for _ in range(times):
        await desk.work()
        clock.advance(**pause)


async def test_a_destination_that_fails_steadily_is_paused_and_probed(make_desk, store, clock):
    desk = await make_desk(retry_schedule=["1s"] * 50, pause_after="10s", pause_after_failures=5)
    desk.channel.answer = raising(*(TryLater("down", status=500) for _ in range(9)))
    await store(*(alert(n) for n in range(4)))
    await fail(desk, clock, 1, seconds=2)
    assert await standing(desk) == (DestinationState.ACTIVE, None)  # not for long enough
    clock.advance(seconds=10)
    await desk.work()
    assert await standing(desk) == (DestinationState.PAUSED, StopReason.FAILING)
    before = len(desk.channel.deliveries)
    clock.advance(seconds=59)
    await desk.work()
    assert len(desk.channel.deliveries) == before  # waiting deliveries are on hold
    clock.advance(seconds=2)
    await desk.work()
    assert len(desk.channel.deliveries) == before + 1  # a probe, which fails
    assert await standing(desk) == (DestinationState.PAUSED, StopReason.FAILING)
    clock.advance(seconds=61)
    await desk.work()
    assert await standing(desk) == (DestinationState.ACTIVE, None)
    assert await desk.unfinished() == 0


async def test_what_arrives_in_part_says_nothing_against_the_receiver(make_desk, store, clock):
    desk = await make_desk(retry_schedule=["1s"] * 50, pause_after="10s", pause_after_failures=5)
    desk.channel.answer = raising(*(TryLater("one is put off", partly=True) for _ in range(9)))
    await store(alert())
    await fail(desk, clock, 9, seconds=2)
    assert await standing(desk) == (DestinationState.ACTIVE, None)
    assert await desk.state() == ("pending", 9)
    await desk.work()
    assert await desk.state() == ("delivered", 10)


async def test_pausing_and_resuming_are_in_the_audit_log(make_desk, store, clock):
    desk = await make_desk(retry_schedule=["1s"] * 50, pause_after="0s", pause_after_failures=1)
    desk.channel.answer = raising(TryLater("down"))
    await store(alert())
    await desk.work()
    clock.advance(seconds=61)
    await desk.work()
    rows = await desk.database.read(lambda c: list(c.execute(select(audit)).mappings()))
    assert [(row["actor"], row["action"], row["target"]) for row in rows] == [
        ("system", "destination.pause", "destination:soc"),
        ("system", "destination.resume", "destination:soc"),
    ]
    assert rows[0]["details"] == {"reason": "failing", "detail": "down"}


async def test_a_receiver_that_has_too_much_to_do_is_left_alone_as_a_whole(desk, store, clock):
    desk.channel.answer = raising(TryLater("busy", after=timedelta(seconds=30), throttled=True))
    await store(alert(1))
    await desk.work()
    await store(alert(2))
    clock.advance(seconds=29)
    await desk.work()
    assert len(desk.channel.deliveries) == 1
    clock.advance(seconds=5)
    await desk.work()
    assert (len(desk.channel.deliveries), await desk.unfinished()) == (3, 0)


async def test_a_receiver_that_wants_no_more_gets_no_more(desk, store):
    desk.channel.answer = raising(Refused("410", unwanted=True, status=410))
    await store(alert(1))
    await desk.work()
    await store(alert(2))
    await desk.work()
    assert await standing(desk) == (DestinationState.DISABLED, StopReason.GONE)
    assert len(desk.channel.deliveries) == 1
    states = await desk.database.read(lambda c: list(c.scalars(select(deliveries.c.state))))
    assert sorted(states) == ["on_hold", "pending"]


async def test_a_rate_holds_whatever_waits(make_desk, store, clock):
    desk = await make_desk(rate_limit=120)
    await store(*(alert(n) for n in range(20)))
    delivered = []
    for _ in range(5):
        await desk.work()
        delivered.append(len(desk.channel.deliveries))
        clock.advance(seconds=1)
    assert delivered == [2, 4, 6, 8, 10]


async def test_turns_that_were_not_needed_are_not_lost(make_desk, store, clock):
    desk = await make_desk(rate_limit=60)
    for number in range(3):
        await desk.work()  # nothing waits
        await store(alert(number))
        await desk.work()
        clock.advance(seconds=1)
    assert len(desk.channel.deliveries) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"state": DestinationState.DISABLED, "reason": StopReason.MANUAL},
        {"state": DestinationState.DELETED},
        {"revision": 2},
    ],
)
async def test_what_is_claimed_ahead_is_given_back_when_its_destination_changes(
    make_desk, store, clock, change
):
    desk = await make_desk(concurrency=1)
    is_there, may_end = asyncio.Event(), asyncio.Event()

    async def deliver(delivery):
        desk.channel.deliveries.append(delivery)
        is_there.set()
        await may_end.wait()
        return Receipt(status=200)

    desk.channel.deliver = deliver
    await store(*(alert(n) for n in range(3)))
    await desk.router.route_waiting()
    assert await desk.worker.claim() == 3
    await is_there.wait()
    await add(desk.database, destination(**change))
    clock.advance(seconds=1)
    may_end.set()
    await flush(desk.worker)
    assert len(desk.channel.deliveries) == 1
    rows = await desk.database.read(lambda c: list(c.execute(select(deliveries)).mappings()))
    assert sorted((row["state"], row["lease"], row["attempts"]) for row in rows) == [
        ("delivered", None, 1),
        ("pending", None, 0),
        ("pending", None, 0),
    ]
    assert await desk.worker.claim() == 0


async def test_a_long_attempt_keeps_its_lease(desk, store, clock):
    may_end = asyncio.Event()

    async def deliver(_):
        await may_end.wait()
        return Receipt(status=200)

    desk.channel.deliver = deliver
    await store(alert())
    await desk.router.route_waiting()
    await desk.worker.claim()
    for _ in range(10):
        clock.advance(seconds=60)
        await desk.worker.extend()
    assert await desk.queue.claim("soc", 10, clock.now()) == []
    may_end.set()
    await flush(desk.worker)
    assert await desk.state() == ("delivered", 1)


async def test_in_order_a_subjects_deliveries_arrive_one_after_the_other(make_desk, store):
    desk = await make_desk(ordered=True)
    await store(*(alert(n % 3) for n in range(30)))
    await desk.work()
    for number in range(3):
        delivered = (delivery.event for delivery in desk.channel.deliveries)
        events = [event.id for event in delivered if event.subject == f"incident:{number}"]
        assert (len(events), events) == (10, sorted(events))


async def test_an_outage_uses_up_no_retries_and_its_end_sends_what_waits_at_once(
    make_desk, store, clock
):
    desk = await make_desk(
        retry_schedule=["1h"], pause_after="0s", pause_after_failures=2, probe_interval="1m"
    )
    desk.channel.answer = raising(*(TryLater("down") for _ in range(12)))
    await store(*(alert(n) for n in range(3)))
    await desk.work()
    assert await standing(desk) == (DestinationState.PAUSED, StopReason.FAILING)
    for _ in range(9):  # probes, none of them when it was due
        clock.advance(seconds=61)
        await desk.work()
    assert (len(desk.channel.deliveries), await desk.unfinished()) == (12, 3)
    clock.advance(seconds=61)
    await desk.work()
    assert await standing(desk) == (DestinationState.ACTIVE, None)
    await desk.work()
    assert (len(desk.channel.deliveries), await desk.unfinished()) == (15, 0)


async def test_a_hold_ends_though_nothing_waited_when_it_was_over(desk, store, clock):
    desk.channel.answer = raising(TryLater("busy", status=502, throttled=True))
    await store(alert(1))
    await desk.work()
    for _ in range(4):  # nothing is due, so nobody can be tried
        clock.advance(seconds=1)
        await desk.work()
    await store(alert(2))
    await desk.work()
    assert [delivery.event.subject for delivery in desk.channel.deliveries][-1] == "incident:2"


async def test_a_receiver_that_stays_busy_is_tried_when_it_asks_for_it(make_desk, store, clock):
    desk = await make_desk(retry_schedule=["1s"] * 20)
    busy = TryLater("busy", after=timedelta(seconds=10), throttled=True)
    desk.channel.answer = raising(*[busy] * 4)
    await store(alert())
    tried = []
    for second in range(50):
        before = len(desk.channel.deliveries)
        await desk.work()
        tried += [second] * (len(desk.channel.deliveries) - before)
        clock.advance(seconds=1)
    assert len(tried) == 5
    assert all(9 < later - earlier < 13 for earlier, later in pairwise(tried))


async def test_whoever_ends_begins_nothing_more(make_desk, store):
    desk = await make_desk(concurrency=1)
    is_there, may_end = asyncio.Event(), asyncio.Event()

    async def deliver(delivery):
        desk.channel.deliveries.append(delivery)
        is_there.set()
        await may_end.wait()
        return Receipt(status=200)

    desk.channel.deliver = deliver
    await store(*(alert(n) for n in range(5)))
    await desk.router.route_waiting()
    await desk.worker.claim()
    await is_there.wait()
    ending = asyncio.create_task(desk.worker.finish(timedelta(seconds=10)))
    await asyncio.sleep(0)
    may_end.set()
    await ending
    assert len(desk.channel.deliveries) == 1
    rows = await desk.database.read(lambda c: list(c.execute(select(deliveries)).mappings()))
    assert sorted((row["state"], row["lease"]) for row in rows) == [
        ("delivered", None),
        *[("pending", None)] * 4,
    ]


async def test_a_clock_that_was_set_during_an_attempt_stops_nothing(desk, store, clock):
    def answer(_):
        clock.advance(days=400)
        return Receipt(status=200)

    desk.channel.answer = answer
    await store(alert())
    await desk.work()
    assert await desk.state() == ("delivered", 1)
