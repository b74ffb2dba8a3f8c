"""Rows that callers read at the same time by one statement."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import bindparam, insert, select, text, update

from tocsin.store import driver_sessions
from tocsin.store.driver_queries import DriverQuery
from tocsin.store.tables import sequences

pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
QUERY = DriverQuery(
    select(sequences.c.name, sequences.c.value)
    .where(sequences.c.name == bindparam("name"))
    .where(sequences.c.value >= bindparam("least")),
    ("name", "least"),
    is_lookup=True,
)
NAMES = [f"name {number}" for number in range(100)]


@pytest.fixture
async def statements(database, monkeypatch) -> asyncio.Queue[str]:
    """The statements that were run since, among 100 numbers of sequences."""
    rows = [{"name": name, "value": number} for number, name in enumerate(NAMES)]
    await database.write(lambda connection: connection.execute(insert(sequences), rows))
    run = asyncio.Queue()
    fetch_rows = driver_sessions.DriverSession.fetch_rows

    async def note(self, statement, values):
        run.put_nowait(statement)
        return await fetch_rows(self, statement, values)

    monkeypatch.setattr(driver_sessions.DriverSession, "fetch_rows", note)
    return run


async def read(database, *wanted: tuple[str, int]) -> list[tuple | None]:
    rows = await asyncio.gather(*[database.fetch_row(QUERY, each) for each in wanted])
    return [None if row is None else tuple(row) for row in rows]


async def test_every_caller_gets_the_row_of_its_own_parameters(database, statements):
    wanted = [("name 3", 0), ("name 4", 5), ("none", 0), ("name 3", 3), ("name 9", 9)]
    found = [("name 3", 3), None, None, ("name 3", 3), ("name 9", 9)]
    assert await read(database, *wanted) == found
    assert statements.qsize() == 2  # the first caller has nobody to wait for


async def test_callers_with_the_same_parameters_share_a_row(database, statements):
    assert await read(database, *[("name 5", 0)] * 8) == [("name 5", 5)] * 8
    assert statements.qsize() == 2
    assert statements.get_nowait() == statements.get_nowait()


async def test_many_callers_take_several_statements(database, statements):
    wanted = [(name, 0) for name in NAMES]
    assert await read(database, *wanted) == [(name, number) for number, name in enumerate(NAMES)]
    assert statements.qsize() == 3


async def test_who_asks_while_a_statement_runs_gets_a_later_row(database, statements):
    async with database._engine.connect() as connection, connection.begin():
        await connection.execute(text("LOCK TABLE sequences"))
        first = asyncio.create_task(read(database, ("name 1", 0)))
        await statements.get()
        second = asyncio.create_task(read(database, ("name 1", 0), ("name 2", 0)))
        await asyncio.sleep(0)
        await connection.execute(update(sequences).values(value=7))
    await first
    assert await second == [("name 1", 7), ("name 2", 7)]
    assert statements.qsize() == 1


@pytest.mark.parametrize("place", [0, 1])
async def test_a_caller_that_leaves_takes_nothing_from_the_others(database, statements, place):
    names = ("name 1", "name 1", "name 2", "name 3")
    callers = [asyncio.create_task(database.fetch_row(QUERY, (name, 0))) for name in names]
    await statements.get()
    leaving = callers.pop(place)
    leaving.cancel()
    rows = [tuple(row) for row in await asyncio.gather(*callers)]
    assert rows == [("name 1", 1), ("name 2", 2), ("name 3", 3)]
    assert leaving.cancelled()
    assert statements.qsize() == 1


async def test_nobody_gets_a_row_of_a_statement_that_takes_too_long(
    database, statements, monkeypatch
):
    monkeypatch.setattr(driver_sessions, "_MOST_SECONDS", 0.05)
    wanted = [("name 1", 0), ("name 2", 0)]
    async with database._engine.connect() as connection, connection.begin():
        await connection.execute(text("LOCK TABLE sequences"))
        assert await read(database, *wanted) == [None, None]
    monkeypatch.setattr(driver_sessions, "_MOST_SECONDS", 10)
    assert await read(database, *wanted) == [("name 1", 1), ("name 2", 2)]
