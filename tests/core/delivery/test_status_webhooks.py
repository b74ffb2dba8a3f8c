"""Objects that webhooks name are read soon, and no more often than that."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import insert, select

from tocsin.delivery.statuses.reader import make_status_reader
from tocsin.delivery.statuses.repository import _SELECT_NAMED, WEBHOOK_PAUSE, mark_due
from tocsin.store.tables import remote_objects

from .conftest import add, destination
from .test_statuses import DONE, OPEN, deliver, load, make_board

__all__ = ["deliver"]


@pytest.fixture
def board(clock):
    return make_board(clock)


@pytest.fixture
async def reader(database, board, deliver, clock):
    """Return a reader that has read the tickets A and B a minute ago."""
    await add(database, destination("soc"))
    await deliver({1: "A", 2: "B", "session:ses_1": "C"})
    board.statuses = {"A": OPEN, "B": OPEN}
    reader = make_status_reader(board, database, 1)
    for _ in range(3):
        await reader.read_next()
        clock.advance(seconds=1)
    clock.advance(minutes=1)
    board.asked.clear()
    return reader


@pytest.fixture
def mark(database, clock):
    async def mark(*remote_ids: str, name: str = "soc") -> int:
        return await database.write(mark_due, name, remote_ids, clock.now())

    return mark


async def test_a_named_ticket_is_read_at_the_receiver_at_once(reader, board, mark, database):
    assert not await reader.read_next()
    board.statuses["A"] = DONE
    assert await mark("A") == 1
    assert await reader.read_next()
    assert board.asked == [["A"]]
    assert [row["status"] for row in await load(database) if row["remote_id"] == "A"] == ["Done"]


async def test_repeated_webhooks_cause_one_read(reader, board, mark, clock):
    assert [await mark("A") for _ in range(5)] == [1, 0, 0, 0, 0]
    await reader.read_next()
    clock.advance(seconds=2)
    assert [await mark("A") for _ in range(5)] == [1, 0, 0, 0, 0]
    assert not await reader.read_next()  # the change of the second webhook is not lost
    clock.advance(seconds=WEBHOOK_PAUSE.total_seconds())
    assert await reader.read_next()
    assert board.asked == [["A"], ["A"]]


async def test_others_are_not_read(reader, mark):
    assert await mark("Z", "C") == 0  # an unknown ticket, and one of another subject
    assert await mark("A", name="other") == 0
    assert not await reader.read_next()


async def test_the_parent_of_an_object_is_named(reader, board, mark, clock):
    board.statuses["B"] = replace(OPEN, parent_id="case-7")
    await mark("B")
    await reader.read_next()
    clock.advance(minutes=1)
    assert await mark("case-7") == 1
    await reader.read_next()
    assert board.asked == [["B"], ["B"]]
    board.statuses["B"] = OPEN
    clock.advance(minutes=1)
    await mark("B")
    await reader.read_next()
    assert await mark("case-7") == 0


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_named_objects_are_found_by_indexes(database):
    def explain(connection):
        statement = f"EXPLAIN QUERY PLAN {_SELECT_NAMED.compile(connection.engine)}"
        return [row[3] for row in connection.exec_driver_sql(statement, ("soc", "A") * 2)]

    plan = " | ".join(await database.read(explain))
    assert "ix_remote_objects_remote_id (remote_id=?)" in plan
    assert "ix_remote_objects_parent_id (parent_id=?)" in plan


async def test_ids_of_any_length_are_stored_and_named(reader, deliver, mark, clock):
    long = "".join(chr(0x10000 + number * 7919 % 0x10000) for number in range(1000))
    await deliver({3: long})
    await reader.read_next()
    clock.advance(minutes=1)
    assert await mark(long) == 1


async def test_an_id_that_cannot_be_stored_names_nothing(reader, mark):
    assert await mark("A\0", "A") == 1


@pytest.mark.full
async def test_a_parent_may_have_more_objects_than_a_statement_has_parameters(
    reader, mark, database
):
    def add_children(connection):
        found = select(remote_objects).where(remote_objects.c.remote_id == "A")
        row = dict(connection.execute(found).mappings().one()) | {"parent_id": "case-7"}
        ids = ({"subject": f"incident:{n}", "remote_id": f"Z{n}"} for n in range(10, 33_010))
        connection.execute(insert(remote_objects), [row | each for each in ids])

    await database.write(add_children)
    assert await mark("case-7") == 33_000


async def test_a_webhook_during_a_read_is_not_lost(reader, board, mark, clock):
    await mark("A")
    read = board.read_statuses

    async def read_before_the_change(identifiers):
        found = await read(identifiers)
        clock.advance(seconds=1)
        board.statuses["A"] = DONE
        await mark("A")
        return found

    board.read_statuses = read_before_the_change
    await reader.read_next()
    board.read_statuses = read
    clock.advance(seconds=WEBHOOK_PAUSE.total_seconds() + 1)
    assert await reader.read_next()
    assert board.asked == [["A"], ["A"]]
    clock.advance(minutes=1)
    assert not await reader.read_next()


async def test_a_failing_receiver_is_not_asked_more_often(reader, board, mark, clock):
    board.failure = TimeoutError()
    await mark("A")
    await reader.read_next()
    board.failure = None
    await mark("A")
    clock.advance(seconds=30)
    assert not await reader.read_next()
    clock.advance(minutes=1)
    assert await reader.read_next()
