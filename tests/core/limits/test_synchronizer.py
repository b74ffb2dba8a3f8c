"""Nodes that share a database share their limits, and count everything once."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import select, text, update
from sqlalchemy.exc import DBAPIError

from tocsin.limits import BucketSynchronizer, Quota, TokenBuckets
from tocsin.limits.synchronizer import UsageTotals
from tocsin.store.tables import rate_usage

BURST = 100
QUOTA = Quota(per_minute=600, burst=BURST)
KEY = "key:0123456789abcdef"
only_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


class Node:
    """The limits of one node."""

    def __init__(self, name, database, clock, limit="credential"):
        self.buckets = TokenBuckets(limit, QUOTA, clock)
        self.sharing = BucketSynchronizer([self.buckets], database, clock, node=name)
        self.exchange = self.sharing.exchange

    def take(self, count, key=KEY):
        """Return how many of so many requests are let through."""
        return sum(self.buckets.take(key).allowed for _ in range(count))

    def used(self, key=KEY):
        """Return how many tokens are missing here, whoever took them."""
        return BURST - self.buckets.look(key).remaining


@pytest.fixture
def start(database, clock):
    async def start(name, **options):
        node = Node(name, database, clock, **options)
        await node.exchange()
        return node

    return start


@pytest.fixture
async def nodes(start):
    return await start("one"), await start("two")


@pytest.fixture
def rows(database):
    async def rows():
        return await database.read(lambda c: c.execute(select(rate_usage)).all())

    return rows


async def exchange(*nodes):
    for node in nodes:
        await node.exchange()


async def rename_table(database, old, new):
    await database.write(lambda c: c.execute(text(f"ALTER TABLE {old} RENAME TO {new}")))


async def test_what_one_node_lets_through_is_missing_from_the_other(nodes):
    one, two = nodes
    one.take(3)
    two.take(4)
    await exchange(one, two, one)
    assert (one.used(), two.used()) == (7, 7)


async def test_however_often_nodes_exchange_nothing_counts_twice(nodes):
    one, two = nodes
    one.take(3)
    two.take(4)
    await exchange(*nodes * 5)
    one.take(1)
    await exchange(*nodes * 5)
    assert (one.used(), two.used()) == (8, 8)


async def test_two_nodes_that_are_asked_for_all_they_have_grant_about_one_quota(nodes, clock):
    granted = 0
    for tenth in range(600):
        if tenth % 20 == 0:
            await exchange(*nodes)
        granted += sum(node.take(5) for node in nodes)
        clock.advance(milliseconds=100)
    # both bursts are there before the nodes have heard of each other
    assert QUOTA.per_minute * 0.95 <= granted <= QUOTA.per_minute * 1.05 + 2 * BURST


async def test_what_is_given_back_is_there_for_the_same_node_to_take_again(nodes):
    one, two = nodes
    one.take(3)
    await exchange(*nodes)
    one.buckets.give_back(KEY, 2)
    await exchange(*nodes)
    one.take(2)
    await exchange(*nodes)
    assert (one.used(), two.used()) == (3, 3)


async def test_a_node_that_starts_does_not_answer_for_what_was_used_before(nodes, start, clock):
    one, two = nodes
    one.take(50)
    await exchange(*nodes)
    clock.advance(minutes=5)
    three = await start("three")
    assert three.used() == 0
    one.take(1)
    await exchange(one, two, three)
    assert (one.used(), two.used(), three.used()) == (1, 1, 1)


async def test_a_node_that_restarts_is_counted_on(nodes, start):
    one, two = nodes
    one.take(3)
    await exchange(one, two)
    again = await start("one, restarted")
    again.take(2)
    await exchange(again, two, again)
    assert (again.used(), two.used()) == (2, 5)


async def test_what_could_not_be_written_is_told_once_it_can_be(nodes, database):
    one, two = nodes
    one.take(3)
    await rename_table(database, "rate_usage", "away")
    for _ in range(2):
        with pytest.raises(DBAPIError):
            await one.exchange()
        one.take(2)
    await rename_table(database, "away", "rate_usage")
    await exchange(*nodes * 3)
    assert (one.used(), two.used()) == (7, 7)


async def test_rows_are_pruned_after_ten_minutes_and_their_totals_start_again(nodes, clock, rows):
    one, two = nodes
    one.take(3)
    await exchange(*nodes)
    clock.advance(minutes=10)
    await exchange(*nodes)
    assert len(await rows()) == 1
    clock.advance(minutes=1)
    await exchange(*nodes)
    assert await rows() == []
    assert len(one.sharing._written) == len(two.sharing._seen) == 0
    one.take(2)
    await exchange(*nodes * 2)
    assert [row.used for row in await rows()] == [2]
    assert two.used() == 2


@pytest.mark.parametrize("pruned_late", ["one", "two"])
async def test_a_total_starts_again_for_its_reader_when_it_does_for_its_writer(
    nodes, clock, pruned_late
):
    one, two = nodes
    one.take(3)
    await exchange(*nodes)
    clock.advance(seconds=590)
    await {"one": one, "two": two}[pruned_late].exchange()
    clock.advance(seconds=11)
    await exchange(*nodes)
    one.take(2)
    await exchange(*nodes)
    assert two.used() == 2


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_pruning_does_not_wait_for_what_another_node_is_writing(nodes, clock, database, rows):
    one, two = nodes
    one.take(1)
    two.take(1)
    await exchange(*nodes)
    clock.advance(minutes=11)
    async with database._engine.begin() as transaction, asyncio.timeout(10):
        await transaction.execute(
            update(rate_usage).where(rate_usage.c.node == "one").values(used=2)
        )
        await two.exchange()
    assert [(row.node, row.used) for row in await rows()] == [("one", 2)]


async def test_a_node_that_was_away_for_long_does_not_answer_for_the_time(nodes, clock):
    one, two = nodes
    for _ in range(3):
        clock.advance(minutes=5)
        one.take(50)
        await one.exchange()
    await two.exchange()
    assert two.used() == 0
    one.take(1)
    await exchange(one, two)
    assert two.used() == 1


async def test_clocks_may_be_some_seconds_apart(database, clock, nodes):
    one, _ = nodes
    slow = type(clock)(clock.now() - timedelta(seconds=9))
    late = Node("late", database, slow)
    await late.exchange()
    for node in (late, one) * 2:
        node.take(1)
        await exchange(late, one)
    await late.exchange()
    assert (late.used(), one.used()) == (4, 4)


async def test_nothing_is_written_where_nothing_was_used(nodes, clock, rows):
    one, _ = nodes
    one.take(3)
    await one.exchange()
    before = await rows()
    clock.advance(seconds=2)
    await exchange(*nodes)
    one.take(1)
    one.buckets.give_back(KEY)
    await exchange(*nodes)
    assert await rows() == before


@pytest.mark.parametrize("key", ["x" * 1000, "nul \0", "surrogate \udce9", "é" * 300])
async def test_whatever_the_key_is_it_is_shared(nodes, key):
    one, two = nodes
    one.take(3, key)
    await exchange(*nodes)
    assert two.used(key) == 3


@only_sqlite
async def test_limits_do_not_mix(start):
    one, two = await start("one"), await start("two", limit="failures")
    one.take(3)
    await exchange(one, two)
    assert two.used() == 0


@only_sqlite
async def test_it_goes_on_by_itself(database, clock, rows):
    node = Node("one", database, clock)
    loop = asyncio.create_task(node.sharing.run())
    async with asyncio.timeout(10):
        for used in (1, 2):
            node.take(1)
            while [row.used for row in await rows()] != [used]:
                pass
    loop.cancel()
    await asyncio.wait([loop])
    assert loop.cancelled()


def test_totals_are_remembered_in_bounded_memory(clock):
    totals = UsageTotals(size=2)
    for name in ("a", "b", "a", "c"):
        totals.set((name,), 1, clock.now())
    assert [totals.get((name,), clock.now()) for name in "abc"] == [1, 0, 1]
