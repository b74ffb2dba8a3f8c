"""Routing by several nodes at once, each of its own shards of the subjects."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import select, text

from present_nodes import attending
from tocsin.delivery.queue.queue import DeliveryQueue
from tocsin.delivery.routing.assignment import ShardAssignment
from tocsin.delivery.routing.plan import Routes
from tocsin.delivery.routing.router import route_events
from tocsin.events import SHARDS, EventShare, emit_events, lock_subjects
from tocsin.identifiers import new_id
from tocsin.store import open_database, record_heartbeat
from tocsin.store.tables import deliveries

from .conftest import add, alert, destination

on_postgres = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture
def route(database, clock):
    """Route as a node of its own, up to some events of a share."""

    async def route(*shards: int, most: int = 9, until: str = ""):
        share = EventShare(shards, until) if shards else None
        queue = DeliveryQueue(database)
        return await route_events(database, queue, Routes(), most, clock.now(), share=share)

    return route


async def offered(database) -> list[tuple[str, str]]:
    """Return subject and event of the deliveries, in the order in which they were offered."""
    query = select(deliveries.c.subject, deliveries.c.event_id).order_by(deliveries.c.id)
    return await database.read(lambda c: [tuple(row) for row in c.execute(query)])


async def shard(database, subject: str) -> int:
    query = text(f"SELECT hashtextextended(:subject, 0) & {SHARDS - 1}")
    return await database.read(lambda c: c.scalar(query, {"subject": subject}))


async def alerts_of_two_shards(database):
    """Return an event, a later one of another shard, and their shards."""
    first = alert(1)
    for number in range(2, 100):
        second = alert(number)
        shards = [await shard(database, each.subject) for each in (first, second)]
        if shards[0] != shards[1]:
            return first, second, *shards
    raise AssertionError("one shard")


@pytest.mark.parametrize("seed", [1, 2])
async def test_nodes_that_route_at_once_offer_every_subject_in_order(database, route, seed):
    dice, is_shared = random.Random(seed), database.is_shared
    await add(database, destination())
    halves = (tuple(range(0, SHARDS, 2)), tuple(range(1, SHARDS, 2)), tuple(range(SHARDS)))
    shares = [*halves, ()] if is_shared else [()]
    events = []
    for _ in range(40):
        event = alert(dice.randrange(6))
        related = (f"incident:{dice.randrange(6)}",) if dice.random() < 0.2 else ()
        events.append(replace(event, related=related))
    emitted = asyncio.Event()

    async def emit() -> None:
        for event in events:
            await database.write(emit_events, [event])
        emitted.set()

    async def work(shards: tuple[int, ...]) -> None:
        while True:
            is_last = emitted.is_set()
            result = await route(*shards, most=5)
            if is_last and not result.count and not result.is_waiting:
                return
            await asyncio.sleep(0)

    await asyncio.gather(emit(), *map(work, shares))
    found = await offered(database)
    assert sorted(id_ for _, id_ in found) == [event.id for event in events]
    order = {id_: at for at, (_, id_) in enumerate(found)}
    for at, event in enumerate(events):
        for earlier in events[:at]:
            if earlier.subject in (event.subject, *event.related):
                assert order[earlier.id] < order[event.id]


@on_postgres
async def test_nobody_waits_for_a_node_that_routes_other_subjects(database, route):
    first, second, *_ = await alerts_of_two_shards(database)
    await add(database, destination())
    await database.write(emit_events, [second])
    other = open_database(database._engine.url)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(other.close)
        connection = await stack.enter_async_context(other._engine.begin())
        await connection.run_sync(lock_subjects, [first.subject])
        assert (await route()).count == 1


@on_postgres
async def test_an_event_waits_for_earlier_ones_of_related_subjects(database, route):
    first, second, first_shard, second_shard = await alerts_of_two_shards(database)
    await add(database, destination())
    report = replace(second, related=(first.subject,))
    await database.write(emit_events, [first, report, replace(alert(), subject=second.subject)])
    waiting = await route(second_shard)
    assert (waiting.count, waiting.is_waiting) == (0, True)
    assert (await route(first_shard)).count == 1
    assert (await route(second_shard)).count == 2
    assert [id_ for _, id_ in await offered(database)][:2] == [first.id, report.id]


@on_postgres
async def test_old_events_of_other_nodes_are_routed_by_any(database, route):
    first, second, _, second_shard = await alerts_of_two_shards(database)
    await add(database, destination())
    await database.write(emit_events, [first, second])
    assert (await route(second_shard, until=first.id)).count == 1
    assert (await route(second_shard, until=first.id)).count == 0
    assert (await route(second_shard, until=second.id)).count == 1


@on_postgres
async def test_the_nodes_that_deliver_share_all_shards_among_them(database, migrated_url):
    now = datetime.now(UTC)
    alone = await ShardAssignment(database, 7, "deliver").find(now, is_behind=False)
    assert alone is None
    async with AsyncExitStack() as stack:
        for number, roles in ((7, ["api", "deliver"]), (8, ["deliver"]), (9, ["api"])):
            await stack.enter_async_context(attending(migrated_url, number))
            await database.write(record_heartbeat, number, str(number), [], now, roles=roles)
        gone = 6
        await database.write(record_heartbeat, gone, "gone", [], now, roles=["deliver"])
        shares = [
            await ShardAssignment(database, number, "deliver").find(now, is_behind=False)
            for number in (7, 8)
        ]
    assert sorted(each for share in shares for each in share.shards) == list(range(SHARDS))
    assert [len(share.shards) for share in shares] == [SHARDS // 2] * 2
    assert all(share.until < new_id("evt") for share in shares)


@on_postgres
async def test_a_node_that_is_behind_leaves_other_shards_alone_for_a_while(database, migrated_url):
    now = datetime.now(UTC)
    async with attending(migrated_url, 8):
        await database.write(record_heartbeat, 8, "other", [], now, roles=["deliver"])
        assignment = ShardAssignment(database, 7, "deliver")
        found = [await assignment.find(now, is_behind=True) for _ in range(2)]
    assert [bool(share.until) for share in found] == [True, False]
