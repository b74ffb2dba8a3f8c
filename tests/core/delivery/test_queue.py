"""The promises of the queue, which every implementation keeps."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from sqlalchemy import select, text

from tocsin.delivery import queue
from tocsin.delivery.routing import Route, route
from tocsin.events import emit, unrouted
from tocsin.model import Event, EventType, Severity
from tocsin.store.tables import attempts, deliveries, metadata

from .conftest import alert

ALL = frozenset(EventType)


class Queue:
    def __init__(self, database, clock) -> None:
        self.database = database
        self.clock = clock

    async def offer(self, *events: Event, to: str = "soc") -> None:
        await self.database.write(emit, events)
        wanted = [(event, to) for event in events]
        await self.database.write(queue.offer, wanted, self.clock.now())

    async def claim(self, most: int = 10, of: str = "soc") -> list[queue.Claimed]:
        return await self.database.write(queue.claim, of, most, self.clock.now())

    def attempt(self, claimed: queue.Claimed, state: str = queue.DELIVERED, **members):
        now = self.clock.now()
        facts = {"started_at": now, "ended_at": now, "due_at": now, **members}
        return queue.Attempt(claimed=claimed, state=state, outcome=state, **facts)

    async def settle(self, *ended: queue.Attempt) -> list[queue.Attempt]:
        return await self.database.write(queue.settle, ended)

    async def rows(self, table) -> list:
        return await self.database.read(lambda c: list(c.execute(select(table)).mappings()))


@pytest.fixture
def waiting(database, clock) -> Queue:
    return Queue(database, clock)


async def test_what_was_offered_is_claimed_once(waiting):
    event = alert()
    await waiting.offer(event)
    [claimed] = await waiting.claim()
    assert (claimed.event, claimed.attempt, claimed.remote) == (event, 1, None)
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
    assert claimed.remote == "T-1"


async def test_a_failed_attempt_is_due_again_at_its_time(waiting, clock):
    await waiting.offer(alert())
    [claimed] = await waiting.claim()
    clock.advance(seconds=1)
    later = clock.now().replace(second=31)
    await waiting.settle(waiting.attempt(claimed, queue.PENDING, due_at=later))
    clock.advance(seconds=29)
    assert await waiting.claim() == []
    clock.advance(seconds=1)
    [again] = await waiting.claim()
    assert again.attempt == 2


async def test_what_is_released_is_due_at_once_and_untried(waiting, clock):
    await waiting.offer(alert())
    claims = await waiting.claim()
    await waiting.database.write(queue.release, claims, clock.now())
    [again] = await waiting.claim()
    assert again.attempt == 1


async def test_leases_of_a_predecessor_can_be_voided(waiting, clock):
    await waiting.offer(alert(1), alert(2))
    await waiting.claim()
    assert await waiting.database.write(queue.void_leases, clock.now()) == 2
    assert len(await waiting.claim()) == 2


async def test_an_event_becomes_its_deliveries_exactly_once(waiting, database, clock):
    await database.write(emit, [alert(n) for n in range(30)])
    routes = [Route("soc", ALL, Severity.MEDIUM), Route("chat", ALL, Severity.MEDIUM)]
    now = clock.now()
    await asyncio.gather(*(database.write(route, routes, 7, now) for _ in range(10)))
    assert len(await waiting.rows(deliveries)) == 60
    assert await database.write(unrouted, 10) == []


@pytest.mark.parametrize(
    ("events", "least", "taken"),
    [
        (ALL, Severity.MEDIUM, True),
        (ALL, Severity.HIGH, True),
        (ALL, Severity.CRITICAL, False),
        (frozenset({EventType.SCHEDULE_DISABLED}), Severity.MEDIUM, False),
    ],
)
def test_a_route_takes_what_its_settings_name(events, least, taken):
    assert Route("soc", events, least).takes(alert(severity="High")) is taken


def test_the_severity_of_a_route_concerns_incident_alerts_alone():
    failed = replace(alert(), event_type=EventType.INVESTIGATION_FAILED, data={})
    assert Route("soc", ALL, Severity.CRITICAL).takes(failed)


async def test_a_claim_walks_the_index_of_what_is_due(tmp_path):
    from sqlalchemy.dialects import sqlite

    from tocsin.store.sqlite import make_engine

    engine = make_engine(tmp_path / "plan.db")
    with engine.connect() as connection:
        metadata.create_all(connection)
        statement = str(queue._take.compile(dialect=sqlite.dialect(paramstyle="named")))
        parameters = dict.fromkeys(("at_destination", "lease_name"), "x")
        numbers = dict.fromkeys(("now", "leased_until", "most", "param_1"), 1)
        plan = connection.execute(
            text(f"EXPLAIN QUERY PLAN {statement}"), {**parameters, **numbers}
        )
        steps = " | ".join(row.detail for row in plan)
    engine.dispose()
    assert "ix_deliveries_due (destination=? AND due_at<?)" in steps
    assert "TEMP B-TREE" not in steps
