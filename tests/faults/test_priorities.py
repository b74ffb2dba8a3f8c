"""Writes that yield to others."""

from __future__ import annotations

import asyncio
from threading import Event

import pytest

from tocsin.store.sqlite import GROUP_BEHIND, MAX_YIELDS

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def started(database) -> tuple[asyncio.Future, Event]:
    """Occupy the writer; return its write, and what ends it."""
    running, may_end = asyncio.Event(), Event()
    loop = asyncio.get_running_loop()

    def occupy(_connection) -> None:
        loop.call_soon_threadsafe(running.set)
        may_end.wait(10)

    write = asyncio.ensure_future(database.write(occupy))
    await running.wait()
    return write, may_end


async def test_what_arrives_is_written_before_what_yields(database):
    order: list[str] = []
    first, may_end = await started(database)

    def note(_connection, name: str) -> None:
        order.append(name)

    writes = [database.write_behind(note, "claim"), database.write(note, "push")]
    tasks = [asyncio.ensure_future(write) for write in writes]
    await asyncio.sleep(0)
    may_end.set()
    await asyncio.gather(first, *tasks)
    assert order == ["push", "claim"]


async def test_what_yields_is_written_even_if_more_arrives_all_the_time(database):
    done = asyncio.Event()

    async def arrive() -> int:
        commits = 0
        while not done.is_set():
            await database.write(lambda _connection: None)
            commits += 1
        return commits

    async def yield_to_others() -> None:
        await database.write_behind(lambda _connection: None)
        done.set()

    arriving = [arrive() for _ in range(8)]
    *commits, _ = await asyncio.wait_for(asyncio.gather(*arriving, yield_to_others()), 10)
    assert sum(commits) <= 8 * (MAX_YIELDS + 2)


async def test_everything_is_written_before_the_database_closes(database):
    first, may_end = await started(database)
    written: list[int] = []
    behind = [
        asyncio.ensure_future(database.write_behind(lambda _c, n=n: written.append(n)))
        for n in range(3 * GROUP_BEHIND)
    ]
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(database.close())
    may_end.set()
    await asyncio.gather(first, closing, *behind)
    assert written == list(range(3 * GROUP_BEHIND))
