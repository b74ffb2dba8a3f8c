"""A stopped provider is not read, and the ledger says why."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

import pytest

from tocsin.incidents.sync.stop_gate import StopGate
from tocsin.stops import TOPIC, StopKind, StopOrder, begin_stop, end_stop
from tocsin.store.tables import coverage

ARCHIVE = (StopKind.PROVIDER, "archive")
pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def gate(around) -> StopGate:
    return StopGate("archive", around.database, around.clock, around.notifiers[TOPIC])


async def test_a_stop_cancels_the_read_that_is_under_way(gate, around, database, clock):
    began, ended = asyncio.Event(), []

    async def read() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cancelled")

    running = asyncio.create_task(gate.run_while_open(read()))
    await began.wait()
    await database.write(begin_stop, *ARCHIVE, StopOrder("ana"), clock.now())
    around.notifiers[TOPIC].notify()
    async with asyncio.timeout(20):
        await running
    assert ended == ["cancelled"]


async def test_a_failure_of_the_work_is_passed_on(gate):
    async def fail() -> None:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await gate.run_while_open(fail())


async def test_until_a_stop_ends_the_ledger_shows_each_stream_as_stopped(
    gate, around, database, clock, rows
):
    until = clock.now() + timedelta(hours=1)
    await database.write(begin_stop, *ARCHIVE, StopOrder("ana", "Busy", until), clock.now())
    waiting = asyncio.create_task(gate.wait_until_open(["changed", "cases"]))
    async with asyncio.timeout(20):
        while len(ledger := await rows(coverage)) < 2:  # noqa: ASYNC110 - asks a database
            await asyncio.sleep(0.01)
        assert not waiting.done()
        clock.advance(hours=1)
        around.notifiers[TOPIC].notify()
        await waiting
    reason = "disabled by ana (reason: Busy), until 2026-11-21T13:00:00.000Z"
    shown = {(row["stream"], row["outcome"], row["reason"]) for row in ledger}
    assert shown == {(stream, "stopped", reason) for stream in ("changed", "cases")}


async def test_a_sync_reads_nothing_while_it_is_stopped_and_goes_on_where_it_was(
    make_archive, around, database, clock
):
    await database.write(begin_stop, *ARCHIVE, StopOrder("ana"), clock.now())
    sync = make_archive()
    running = asyncio.create_task(sync.run())
    try:
        async with asyncio.timeout(20):
            while await sync._stops.find_stop() is None:  # noqa: ASYNC110 - asks a database
                await asyncio.sleep(0.01)
            assert sync.provider.asked == []
            await database.write(end_stop, *ARCHIVE, "ana", clock.now())
            around.notifiers[TOPIC].notify()
            while not sync.provider.asked:  # noqa: ASYNC110 - no event tells of it
                await asyncio.sleep(0.01)
    finally:
        running.cancel()
        await asyncio.wait({running})


@pytest.mark.parametrize("fails", [False, True], ids=["swallowed", "failed"])
@pytest.mark.parametrize("is_open", [False, True], ids=["stopped", "read"])
async def test_a_gate_ends_also_if_the_database_turns_the_cancellation_into_something_else(
    gate, around, monkeypatch, is_open, fails
):
    entered, lookup = asyncio.Event(), around.database.lookup

    async def look_up_to_the_end(*arguments):
        entered.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.05)
        if fails:
            raise ConnectionError("the connection was closed")
        return await lookup(*arguments)

    monkeypatch.setattr(around.database, "lookup", look_up_to_the_end)
    reading = gate.run_while_open(asyncio.sleep(60)) if is_open else gate.wait_until_open(["cases"])
    running = asyncio.create_task(reading)
    await entered.wait()
    running.cancel()
    await asyncio.wait([running], timeout=5)
    assert running.done()
    assert running.cancelled() or isinstance(running.exception(), ConnectionError)
