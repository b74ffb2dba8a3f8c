"""Incidents that several nodes store at once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest
import structlog
from sqlalchemy import event, func, select, text

from tocsin import Tools
from tocsin.events import Notifiers
from tocsin.incidents import SyncContext, list_incidents, lock_incidents
from tocsin.incidents import push_writer as push_writer_module
from tocsin.incidents.metrics import SyncMeter
from tocsin.incidents.push_writer import PushWriter
from tocsin.incidents.writer import IncidentWriter
from tocsin.model import Received
from tocsin.store import INCIDENT_CHANGE, allot_numbers, open_database
from tocsin.store.tables import coverage, incidents

from .conftest import PUBLIC_URL, Archive, incident

on_postgres = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
MakeWriter = Callable[..., PushWriter]


@pytest.fixture
async def make_writer(database, clock) -> AsyncIterator[MakeWriter]:
    """Make writers of a provider; on PostgreSQL, each as a node of its own."""
    async with AsyncExitStack() as stack:

        def make(provider: str = "pushed") -> PushWriter:
            ours = database
            if database.is_shared:
                ours = open_database(database._engine.url)
                stack.push_async_callback(ours.close)
            tools = Tools(name=provider, http=None, clock=clock, log=structlog.get_logger())
            archive = Archive(Archive.Settings(plugin="archive"), tools)
            context = SyncContext(ours, clock, Notifiers(), PUBLIC_URL)
            return PushWriter(IncidentWriter(archive, context, SyncMeter.none()))

        yield make


def received(*numbers: int, **values) -> Received:
    found = tuple(incident(number, **values) for number in numbers)
    return Received(incidents=found, records=len(found))


@pytest.mark.parametrize("seed", [1, 2])
async def test_who_polls_by_change_misses_nothing_of_what_nodes_store_at_once(
    database, make_writer, seed
):
    dice, seen, is_done = random.Random(seed), dict[int, str](), asyncio.Event()
    writers = [make_writer(name) for name in ("first", "second", "second")]

    async def write(writer: PushWriter, turns: int) -> None:
        for turn in range(turns):
            numbers = dice.sample(range(8), dice.randrange(1, 4))
            await writer.store(received(*numbers, title=f"turn {turn} of {id(writer)}"))

    async def poll() -> None:
        cursor, is_last = 0, False
        while not is_last:
            is_last = is_done.is_set()
            page = await database.read(list_incidents, public_url=PUBLIC_URL, limit=3, after=cursor)
            seen.update((found["number"], found["title"]) for found in page.incidents)
            cursor = page.resume
            is_last = is_last and not page.incidents

    polling = asyncio.create_task(poll())
    await asyncio.gather(*(write(writer, 12) for writer in writers))
    is_done.set()
    await polling
    stored = await database.read(
        lambda c: {row.number: row.title for row in c.execute(select(incidents))}
    )
    assert seen == stored
    assert len(stored) <= 16


async def test_nodes_that_store_one_incident_at_once_merge_it(database, make_writer):
    writers = [make_writer() for _ in range(4)]
    counts = await asyncio.gather(
        *(writer.store(received(1, title=str(at))) for at, writer in enumerate(writers))
    )
    assert sum(each.new for each in counts) == 1
    assert sum(each.records for each in counts) == 4
    assert await database.read(lambda c: c.scalar(select(func.count(incidents.c.number)))) == 1


async def test_what_is_pushed_at_once_shares_transactions(database, make_writer, monkeypatch):
    sizes = []
    store_batch = push_writer_module.store_batch

    def count(connection, key, batch, **options):
        sizes.append(len(batch))
        return store_batch(connection, key, batch, **options)

    monkeypatch.setattr(push_writer_module, "store_batch", count)
    writer = make_writer()
    given = [*(received(number) for number in range(20)), received(3, 20)]
    counts = await asyncio.gather(*(writer.store(each) for each in given))
    assert sizes == [21]
    assert [each.new for each in counts] == [1] * 21
    assert [each.records for each in counts] == [1] * 20 + [2]
    query = select(func.sum(coverage.c.records), func.sum(coverage.c.new))
    assert tuple(await database.read(lambda c: c.execute(query).one())) == (22, 21)


async def test_a_part_that_cannot_be_stored_fails_alone(make_writer, monkeypatch):
    store_batch = push_writer_module.store_batch

    def refuse_one(connection, key, batch, **options):
        if any(each.incidents[0].title == "bad" for each in batch):
            raise ValueError("bad")
        return store_batch(connection, key, batch, **options)

    monkeypatch.setattr(push_writer_module, "store_batch", refuse_one)
    writer, given = make_writer(), [received(1), received(2), received(3, title="bad")]
    tasks = [writer.store(each) for each in given]
    first, second, third = await asyncio.gather(*tasks, return_exceptions=True)
    assert (first.new, second.new) == (1, 1)
    assert isinstance(third, ValueError)
    assert (await writer.store(received(4))).new == 1


async def test_a_batch_has_a_limit(make_writer, monkeypatch):
    monkeypatch.setattr(push_writer_module, "MAX_INCIDENTS", 3)
    writer = make_writer()
    given = [received(*range(at, at + 2)) for at in range(0, 10, 2)]
    counts = await asyncio.gather(*(writer.store(each) for each in given))
    assert [each.new for each in counts] == [2] * 5


@on_postgres
async def test_a_store_waits_for_others_only_once_it_has_nothing_else_to_do(database, make_writer):
    writer, statements = make_writer(), []
    engine = writer.writer.database._engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    async with database._engine.begin() as connection:
        await connection.run_sync(allot_numbers, INCIDENT_CHANGE, 0)  # as a store before its end
        storing = asyncio.create_task(writer.store(received(1)))
        waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        while not await database.read(lambda c: c.scalar(waiting)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        begun = list(statements)
    assert (await storing).new == 1
    assert any("INSERT INTO events" in statement for statement in begun)
    later = statements[len(begun) :]
    assert not any("pg_notify" not in statement for statement in later)  # which follows the commit


@on_postgres
async def test_who_rewrites_incidents_excludes_those_who_store_them(database, make_writer):
    writer = make_writer()
    async with database._engine.begin() as connection:
        await connection.run_sync(lock_incidents)
        storing = asyncio.create_task(writer.store(received(1)))
        await asyncio.wait({storing}, timeout=0.3)
        assert not storing.done()
    assert (await storing).new == 1
