"""The promises of the queue, which every implementation keeps."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from tocsin.delivery.health.breaker import AttemptVerdict
from tocsin.delivery.queue.queue import HEARTBEAT, DeliveryQueue
from tocsin.delivery.queue.states import (
    DEAD,
    DELIVERED,
    ON_HOLD,
    PENDING,
    AttemptResult,
    ClaimedDelivery,
    Vacancy,
)
from tocsin.delivery.routing.plan import Routes
from tocsin.delivery.routing.router import route_events
from tocsin.events import emit_events, load_unrouted
from tocsin.model import Event
from tocsin.store.tables import attempts, deliveries

from .conftest import add, alert, destination


class Queue:
    """The queue under test, and what it takes to put something into it."""

    def __init__(self, queue: DeliveryQueue, database, clock) -> None:
        self.queue = queue
        self.database = database
        self.clock = clock

    async def offer(
        self, *events: Event, to: str = "soc", vacant: int = 0
    ) -> dict[str, list[ClaimedDelivery]]:
        await self.database.write(emit_events, events)
        wanted = [(event, to) for event in events]
        vacancies = {to: Vacancy(vacant, "")} if vacant else {}
        return await self.database.write(
            self.queue.offer, wanted, self.clock.now(), vacancies=vacancies
        )

    async def claim(
        self, most: int = 10, of: str = "soc", *, in_order=False, tenant_key=""
    ) -> list[ClaimedDelivery]:
        return await self.queue.claim(
            of, most, self.clock.now(), in_order=in_order, tenant_key=tenant_key
        )

    def attempt(self, claimed: ClaimedDelivery, state: str = DELIVERED, **members) -> AttemptResult:
        now = self.clock.now()
        facts = {
            "started_at": now,
            "ended_at": now,
            "due_at": now,
            "verdict": AttemptVerdict.NOTHING,
        }
        return AttemptResult(claimed=claimed, state=state, outcome=state, **{**facts, **members})

    async def settle(self, *ended: AttemptResult) -> list[AttemptResult]:
        return await self.queue.settle(ended)

    async def extend(self, *claims: ClaimedDelivery) -> list[ClaimedDelivery]:
        return await self.queue.extend(claims, self.clock.now())

    async def release(self, *claims: ClaimedDelivery, begun=False) -> None:
        await self.queue.release(claims, self.clock.now(), begun=begun)

    async def rows(self, table) -> list:
        return await self.database.read(lambda c: list(c.execute(select(table)).mappings()))


@pytest.fixture(params=[DeliveryQueue], ids=["sql"])
def waiting(request, database, clock) -> Queue:
    return Queue(request.param(database), database, clock)


async def test_what_was_offered_is_claimed_once(waiting):
    event = alert()
    await waiting.offer(event)
    [claimed] = await waiting.claim()
    assert (claimed.event, claimed.attempt, claimed.remote_id) == (event, 1, None)
    assert await waiting.claim() == []


async def test_claims_at_the_same_time_never_share_a_delivery(waiting):
    await waiting.offer(*(alert(n) for n in range(40)))
    claims = await asyncio.gather(*(waiting.claim(7) for _ in range(8)))
    ids = [claimed.id for claim in claims for claimed in claim]
    assert len(ids) == len(set(ids)) == 40


async def test_a_claim_takes_no_more_than_it_asked_for(waiting):
    await waiting.offer(*(alert(n) for n in range(5)))
    assert len(await waiting.claim(3)) == 3


async def test_what_is_due_at_once_is_claimed_in_the_order_of_its_events(waiting):
    events = [alert(n) for n in range(100)]
    await waiting.offer(*events)
    claims = [await waiting.claim(7) for _ in range(15)]
    assert [claimed.event for claim in claims for claimed in claim] == events


async def test_a_claim_is_of_one_destination(waiting):
    await waiting.offer(alert(), to="other")
    assert await waiting.claim(of="soc") == []


async def test_a_delivery_is_due_again_when_its_lease_ran_out(waiting, clock):
    await waiting.offer(alert())
    [first] = await waiting.claim()
    clock.advance(seconds=89)
    assert await waiting.claim() == []
    clock.advance(seconds=1)
    [second] = await waiting.claim()
    assert second.id == first.id
    assert second.lease != first.lease


async def test_whoever_lost_the_lease_settles_nothing(waiting, clock):
    await waiting.offer(alert())
    [first] = await waiting.claim()
    clock.advance(seconds=90)
    [second] = await waiting.claim()
    late = waiting.attempt(first)
    assert await waiting.settle(late) == [late]
    assert await waiting.rows(attempts) == []
    assert await waiting.settle(waiting.attempt(second)) == []


@pytest.mark.parametrize("remote_id", [None, "T-1"])
async def test_a_late_result_beside_that_of_the_next_claim_is_late_alone(waiting, clock, remote_id):
    await waiting.offer(alert())
    [first] = await waiting.claim()
    clock.advance(seconds=90)
    [second] = await waiting.claim()
    late = waiting.attempt(first, status=500)
    valid = waiting.attempt(second, status=200, remote_id=remote_id)
    assert await waiting.settle(late, valid) == [late]
    assert [attempt["status"] for attempt in await waiting.rows(attempts)] == [200]


async def test_a_settled_delivery_keeps_its_attempt(waiting):
    await waiting.offer(alert())
    [claimed] = await waiting.claim()
    await waiting.settle(waiting.attempt(claimed, status=200, response=b"ok", remote_id="T-1"))
    [attempt], [delivery] = await waiting.rows(attempts), await waiting.rows(deliveries)
    assert (attempt["number"], attempt["status"], attempt["response"]) == (1, 200, b"ok")
    assert (delivery["state"], delivery["remote_id"]) == ("delivered", "T-1")
    assert await waiting.claim() == []


async def test_a_later_delivery_of_the_subject_knows_the_remote_object(waiting):
    first, second = alert(7), alert(7)
    await waiting.offer(first)
    [claimed] = await waiting.claim()
    await waiting.settle(waiting.attempt(claimed, remote_id="T-1"))
    await waiting.offer(second)
    [claimed] = await waiting.claim()
    assert claimed.remote_id == "T-1"


async def test_a_delivery_knows_the_objects_of_what_it_is_related_to(waiting):
    await waiting.offer(alert(7))
    [claimed] = await waiting.claim()
    await waiting.settle(waiting.attempt(claimed, remote_id="T-1"))
    later = replace(alert(8), related=("incident:7", "incident:9"))
    await waiting.offer(later)
    [claimed] = await waiting.claim()
    assert (claimed.remote_id, claimed.related) == (None, {"incident:7": "T-1"})
    await waiting.offer(later_to := replace(alert(8), related=("incident:7",)), to="other")
    [claimed] = await waiting.claim(of="other")
    assert (claimed.event, claimed.related) == (later_to, {})


async def test_an_attempt_that_left_nothing_behind_is_known_of(waiting, clock):
    await waiting.offer(alert())
    [first] = await waiting.claim()
    begun_by = clock.now() + HEARTBEAT
    clock.advance(seconds=91)
    [again] = await waiting.claim()
    assert (first.tried_at, again.tried_at, again.attempt) == (None, begun_by, 1)


async def test_what_waits_for_its_turn_may_begin_as_long_as_its_lease_is_extended(waiting, clock):
    await waiting.offer(alert())
    [first] = await waiting.claim()
    clock.advance(seconds=60)
    await waiting.extend(first)
    begun_by = clock.now() + HEARTBEAT
    clock.advance(seconds=91)
    [again] = await waiting.claim()
    assert again.tried_at == begun_by


async def test_an_attempt_that_is_recorded_began_when_that_says(waiting, clock):
    await waiting.offer(alert())
    [first] = await waiting.claim()
    clock.advance(seconds=60)
    await waiting.settle(waiting.attempt(first, PENDING, started_at=clock.now()))
    [again] = await waiting.claim()
    assert again.tried_at == clock.now()


async def test_what_was_given_up_in_the_middle_may_have_arrived(waiting, clock):
    await waiting.offer(alert())
    await waiting.release(*await waiting.claim(), begun=True)
    [again] = await waiting.claim()
    assert (again.tried_at, again.attempt) == (clock.now(), 1)


async def test_an_object_that_was_made_elsewhere_is_not_known(waiting):
    await waiting.offer(alert(7))
    [claimed] = await waiting.claim(tenant_key="here")
    await waiting.settle(waiting.attempt(claimed, remote_id="T-1"))
    await waiting.offer(alert(7), replace(alert(8), related=("incident:7",)))
    claims = await waiting.claim(tenant_key="there")
    assert [(claim.remote_id, claim.related) for claim in claims] == [(None, {}), (None, {})]


async def test_a_delivery_that_is_sent_again_knows_what_it_left(waiting):
    await waiting.offer(alert(7))
    [claimed] = await waiting.claim()
    await waiting.settle(waiting.attempt(claimed, PENDING, remote_id="T-1"))
    [again] = await waiting.claim()
    await waiting.settle(waiting.attempt(again, PENDING))
    [third] = await waiting.claim()
    assert (claimed.previous_remote_id, again.previous_remote_id, third.previous_remote_id) == (
        None,
        "T-1",
        "T-1",
    )


async def test_an_event_that_is_sent_again_does_not_bring_back_an_older_object(waiting):
    old, new = alert(7), alert(7)
    for event, name in ((new, "T-2"), (old, "T-1")):
        await waiting.offer(event)
        [claimed] = await waiting.claim()
        await waiting.settle(waiting.attempt(claimed, remote_id=name))
    await waiting.offer(alert(7))
    [claimed] = await waiting.claim()
    assert claimed.remote_id == "T-2"


async def test_what_a_later_event_has_left_is_not_what_an_earlier_one_is_related_to(waiting):
    report, failure = replace(alert(8), related=("incident:7",)), alert(7)
    await waiting.offer(failure)
    [claimed] = await waiting.claim()
    await waiting.settle(waiting.attempt(claimed, remote_id="T-1"))
    await waiting.offer(report)
    [claimed] = await waiting.claim()
    assert claimed.related == {}


async def test_in_order_what_follows_from_something_waits_until_that_is_there(waiting, clock):
    first, later = alert(7), replace(alert(8), related=("incident:7",))
    await waiting.offer(first, later)
    [claimed] = await waiting.claim(in_order=True)
    assert claimed.event == first
    await waiting.settle(waiting.attempt(claimed, remote_id="T-1"))
    clock.advance(seconds=3)
    [claimed] = await waiting.claim(in_order=True)
    assert (claimed.related, claimed.tried_at) == ({"incident:7": "T-1"}, None)


async def test_what_only_waited_was_not_tried(waiting, clock):
    await waiting.offer(alert())
    [first] = await waiting.claim()
    begun = clock.now() + HEARTBEAT
    clock.advance(seconds=91)
    [second] = await waiting.claim()
    await waiting.settle(waiting.attempt(second, PENDING, unsent=True))
    clock.advance(seconds=1)
    [third] = await waiting.claim()
    assert (first.tried_at, second.tried_at, third.tried_at) == (None, begun, begun)
    assert (third.attempt, third.step) == (2, 1)


async def test_what_was_released_was_not_tried(waiting):
    await waiting.offer(alert())
    await waiting.release(*await waiting.claim())
    [again] = await waiting.claim()
    assert again.tried_at is None


async def test_a_failed_attempt_is_due_again_at_its_time(waiting, clock):
    await waiting.offer(alert())
    [claimed] = await waiting.claim()
    clock.advance(seconds=1)
    later = clock.now().replace(second=31)
    await waiting.settle(waiting.attempt(claimed, PENDING, due_at=later))
    clock.advance(seconds=29)
    assert await waiting.claim() == []
    clock.advance(seconds=1)
    [again] = await waiting.claim()
    assert again.attempt == 2


async def test_what_is_released_is_due_at_once_and_untried(waiting, clock):
    await waiting.offer(alert())
    claims = await waiting.claim()
    await waiting.release(*claims)
    [again] = await waiting.claim()
    assert again.attempt == 1


async def test_a_lease_that_is_extended_runs_on(waiting, clock):
    await waiting.offer(alert())
    [claimed] = await waiting.claim()
    for _ in range(3):
        clock.advance(seconds=80)
        assert await waiting.extend(claimed) == []
    assert await waiting.claim() == []
    assert await waiting.settle(waiting.attempt(claimed)) == []


async def test_whoever_lost_the_lease_extends_and_releases_nothing(waiting, clock):
    await waiting.offer(alert())
    [first] = await waiting.claim()
    clock.advance(seconds=90)
    [second] = await waiting.claim()
    assert await waiting.extend(first) == [first]
    await waiting.release(first)
    assert await waiting.claim() == []
    assert await waiting.settle(waiting.attempt(second)) == []


async def test_in_order_a_subject_has_one_delivery_under_way(waiting):
    first, second, other = alert(1), alert(1), alert(2)
    await waiting.offer(first, second, other)
    claims = await waiting.claim(in_order=True)
    assert [claimed.event for claimed in claims] == [first, other]
    assert await waiting.claim(in_order=True) == []
    await waiting.settle(waiting.attempt(claims[0]))
    assert [claimed.event for claimed in await waiting.claim(in_order=True)] == [second]


async def test_in_order_a_later_delivery_waits_for_the_retries_of_an_earlier_one(waiting, clock):
    first, second = alert(1), alert(1)
    await waiting.offer(first, second)
    [claimed] = await waiting.claim(in_order=True)
    later = clock.now() + timedelta(minutes=5)
    await waiting.settle(waiting.attempt(claimed, PENDING, due_at=later))
    assert await waiting.claim(in_order=True) == []
    clock.advance(minutes=5)
    [claimed] = await waiting.claim(in_order=True)
    await waiting.settle(waiting.attempt(claimed, DEAD))
    assert [claimed.event for claimed in await waiting.claim(in_order=True)] == [second]


@pytest.mark.parametrize("rest", [DEAD, ON_HOLD])
async def test_in_order_what_rests_holds_up_nothing(waiting, rest):
    first, second = alert(1), alert(1)
    await waiting.offer(first, second)
    [claimed] = await waiting.claim(in_order=True)
    await waiting.settle(waiting.attempt(claimed, rest))
    assert [claimed.event for claimed in await waiting.claim(in_order=True)] == [second]


async def test_claims_in_order_at_the_same_time_never_share_a_subject(waiting):
    await waiting.offer(*(alert(n % 5) for n in range(40)))
    for _ in range(8):
        claims = await asyncio.gather(*(waiting.claim(7, in_order=True) for _ in range(6)))
        under_way = [claimed for claim in claims for claimed in claim]
        assert sorted(claimed.event.subject for claimed in under_way) == [
            f"incident:{n}" for n in range(5)
        ]
        await waiting.settle(*map(waiting.attempt, under_way))


async def test_new_deliveries_are_leased_only_where_nothing_else_is_due(waiting):
    await add(waiting.database, destination())
    older, newer = alert(1), alert(2)
    await waiting.offer(older)
    assert await waiting.offer(newer, vacant=10) == {}
    assert [claimed.event for claimed in await waiting.claim()] == [older, newer]


async def test_new_deliveries_are_leased_up_to_the_vacancy(waiting):
    await add(waiting.database, destination())
    events = [alert(number) for number in range(5)]
    leased = await waiting.offer(*events, vacant=3)
    assert [claimed.event for claimed in leased["soc"]] == events[:3]
    assert [claimed.event for claimed in await waiting.claim()] == events[3:]
    assert await waiting.settle(*map(waiting.attempt, leased["soc"])) == []


async def test_an_event_becomes_its_deliveries_exactly_once(waiting, database, clock):
    await add(database, destination("soc"))
    await add(database, destination("chat"))
    await database.write(emit_events, [alert(n) for n in range(30)])
    now = clock.now()
    await asyncio.gather(
        *(route_events(database, waiting.queue, Routes(), 7, now) for _ in range(10))
    )
    assert len(await waiting.rows(deliveries)) == 60
    assert (await database.read(load_unrouted, 10)).events == []
