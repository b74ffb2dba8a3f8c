"""Refusals are counted exactly, within bounds, and written once."""

from __future__ import annotations

import asyncio
from collections import Counter
from threading import Thread

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from structlog.testing import capture_logs

from tocsin.audit import Refusals, list_entries


@pytest.fixture
def refusals(clock) -> Refusals:
    return Refusals(clock)


async def test_refusals_are_one_log_line_and_one_count_each(database, clock):
    counted: Counter[str] = Counter()
    refusals = Refusals(clock, lambda reason: counted.update([reason]))
    for number in range(300):
        refusals.count(f"192.0.2.{number % 3 + (number == 0)}", "x")
    refusals.count("192.0.2.9", "y")
    with capture_logs() as logs:
        await refusals.flush(database)
        await refusals.flush(database)
    common = {"event": "requests refused", "log_level": "warning"}
    assert logs == [
        common | {"reason": "x", "count": 300, "addresses": 3, "most_from": "192.0.2.1"},
        common | {"reason": "y", "count": 1, "addresses": 1, "most_from": "192.0.2.9"},
    ]
    assert counted == {"x": 300, "y": 1}


@pytest.fixture
def written(database):
    async def written() -> Counter[tuple[str, str, str]]:
        page = await database.read(list_entries, limit=20_000, action="refused")
        counts: Counter[tuple[str, str, str]] = Counter()
        for entry in page.entries:
            details = entry["details"]
            counts[entry["address"], details["reason"], details["minute"][11:16]] += entry["count"]
        return counts

    return written


async def test_refusals_are_counted_by_address_reason_and_minute(
    refusals, database, clock, written
):
    clock.advance(seconds=59)
    for address, reason in ("ax", "ax", "ay", "bx"):
        refusals.count(address, reason)
    clock.advance(seconds=1)
    refusals.count("a", "x")
    await refusals.flush(database)
    assert await written() == {
        ("a", "x", "12:00"): 2,
        ("a", "y", "12:00"): 1,
        ("b", "x", "12:00"): 1,
        ("a", "x", "12:01"): 1,
    }


async def test_a_row_says_that_it_was_a_refusal(refusals, database, clock):
    refusals.count("192.0.2.1", "unknown key")
    clock.advance(seconds=30)
    await refusals.flush(database)
    [entry] = (await database.read(list_entries, limit=10)).entries
    wanted = {"action": "refused", "actor": "", "target": None, "request_id": "", "count": 1}
    assert entry | wanted == entry
    assert entry["at"] == "2026-11-21T12:00:30.000Z"
    assert entry["details"] == {"reason": "unknown key", "minute": "2026-11-21T12:00:00.000Z"}


async def test_nothing_is_written_twice(refusals, database, written):
    refusals.count("a", "x")
    await refusals.flush(database)
    await refusals.flush(database)
    refusals.count("a", "x")
    await asyncio.gather(*(refusals.flush(database) for _ in range(5)))
    assert await written() == {("a", "x", "12:00"): 2}


async def test_nothing_is_written_where_nothing_was_refused(refusals, database, written):
    await refusals.flush(database)
    assert await written() == {}


async def test_beyond_a_thousand_a_minute_the_rest_is_elsewhere(refusals, database, clock, written):
    for number in range(1000):
        refusals.count(f"a{number}", "x")
    await refusals.flush(database)  # makes no room within the minute
    for address in ("b", "c", "a7"):
        refusals.count(address, "x")
    clock.advance(minutes=1)
    refusals.count("b", "x")
    await refusals.flush(database)
    counts = await written()
    assert len(counts) == 1002
    assert counts["a7", "x", "12:00"] == 2
    assert counts["elsewhere", "x", "12:00"] == 2
    assert counts["b", "x", "12:01"] == 1


async def test_memory_is_bounded_while_nothing_can_be_written(refusals, database, clock, written):
    for _ in range(12):
        for number in range(1000):
            refusals.count(f"a{number}", "x")
        clock.advance(minutes=1)
    await refusals.flush(database)
    counts = await written()
    assert len(counts) == 10_002
    assert counts["elsewhere", "x", "12:11"] == 1000
    assert counts.total() == 12_000


async def test_a_write_that_fails_loses_nothing(refusals, database, written):
    async def execute(statement: str) -> None:
        await database.write(lambda connection: connection.execute(text(statement)).close())

    refusals.count("a", "x")
    await execute("ALTER TABLE audit RENAME TO away")
    with pytest.raises(DBAPIError):
        await refusals.flush(database)
    refusals.count("a", "x")
    await execute("ALTER TABLE away RENAME TO audit")
    await refusals.flush(database)
    assert await written() == {("a", "x", "12:00"): 2}


async def test_what_is_counted_during_a_write_is_written_by_the_next(refusals, database, written):
    refusals.count("a", "x")
    flush = asyncio.ensure_future(refusals.flush(database))
    while not flush.done():
        refusals.count("a", "x")
        await asyncio.sleep(0)
    counted = refusals._counts.total()
    before = (await written()).total()
    assert counted > 0
    await refusals.flush(database)
    assert (await written()).total() == before + counted


async def test_a_cancelled_flush_is_seen_to_its_end(refusals, database, written):
    refusals.count("a", "x")
    flush = asyncio.create_task(refusals.flush(database))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    flush.cancel()
    await asyncio.wait([flush])
    assert flush.cancelled()
    await refusals.flush(database)
    assert await written() == {("a", "x", "12:00"): 1}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_threads_count_exactly_while_others_write(refusals, database, written):
    def count() -> None:
        for number in range(5000):
            refusals.count(str(number % 7), "x")

    threads = [Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        await refusals.flush(database)
    await refusals.flush(database)
    counts = await written()
    assert (len(counts), counts.total()) == (7, 40_000)


async def test_a_running_loop_writes_every_minute(refusals, database, written, running):
    async with running(refusals.run(database)):
        for expected in (1, 2):
            refusals.count("a", "x")
            while (await written()).total() < expected:
                pass
