"""Inserts that take numbers which become visible in their order."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import bindparam, insert, select, update

from tocsin.store import (
    INCIDENT_CHANGE,
    INCIDENT_NUMBER,
    BulkStatement,
    DatabaseReplaced,
    NumberedWrites,
)
from tocsin.store.tables import incident_counts, removed_incidents, sequences

WRITES_BY_NAME = {
    "counts": BulkStatement(insert(incident_counts), ("severity", "status", "count")),
    "removed": BulkStatement(insert(removed_incidents), removed_incidents.columns.keys()),
}
WRITES = NumberedWrites(INCIDENT_CHANGE, "count", WRITES_BY_NAME)


def write(connection, name: str, places: list[int]) -> None:
    rows = [(name, str(place), place) for place in places]
    WRITES.run(connection, max(places), {"counts": rows, "removed": []})


def load(connection) -> list[tuple[str, str, int]]:
    table = incident_counts.c
    return [*map(tuple, connection.execute(select(incident_counts).order_by(table.count)))]


async def test_rows_take_consecutive_numbers(database):
    await database.write(write, "one", [1, 2, 3])
    await database.write(write, "two", [1, 2])
    assert await database.read(load) == [
        ("one", "1", 1),
        ("one", "2", 2),
        ("one", "3", 3),
        ("two", "1", 4),
        ("two", "2", 5),
    ]
    assert database.floors.get(INCIDENT_CHANGE, 5) == 5


async def test_a_row_changes_with_the_numbered_ones_and_only_if_it_is_named(database):
    change = update(incident_counts).where(incident_counts.c.severity == bindparam("changed_name"))
    change = change.values(count=incident_counts.c.count + bindparam("more"))
    writes = NumberedWrites(INCIDENT_CHANGE, "count", WRITES_BY_NAME, change)

    def run(connection, name: str, changed: dict | None) -> None:
        rows = {"counts": [(name, "1", 1)], "removed": []}
        writes.run(connection, 1, rows, changed)

    await database.write(run, "one", None)
    await database.write(run, "two", {"changed_name": "one", "more": 40})
    await database.write(run, "three", None)
    assert {name: count for name, _, count in await database.read(load)} == {
        "one": 41,
        "two": 2,
        "three": 3,
    }


async def test_transactions_at_once_do_not_share_numbers(database):
    await asyncio.gather(*(database.write(write, str(number), [1, 2]) for number in range(10)))
    stored = await database.read(load)
    assert [row[-1] for row in stored] == [*range(1, 21)]
    assert [row[1] for row in stored] == ["1", "2"] * 10


async def test_numbers_are_reserved_whatever_becomes_of_them(database):
    database.floors[INCIDENT_NUMBER] = 0
    found = await asyncio.gather(*(database.reserve_numbers(INCIDENT_NUMBER, 3) for _ in range(5)))
    assert sorted(number for numbers in found for number in numbers) == [*range(1, 16)]
    if database.is_shared:  # only a server can go back while it is used
        assert database.floors[INCIDENT_NUMBER] == 15
    database.floors[INCIDENT_NUMBER] = 20
    with pytest.raises(DatabaseReplaced, match="incident_number 20 had been issued"):
        await database.reserve_numbers(INCIDENT_NUMBER, 1)


async def test_numbers_of_a_failed_transaction_are_given_again(database):
    def fail(connection) -> None:
        write(connection, "one", [1])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await database.write(fail)
    await database.write(write, "two", [1])
    assert await database.read(load) == [("two", "1", 1)]


async def test_no_number_is_given_twice_by_a_database_that_was_rolled_back(database):
    database.floors[INCIDENT_CHANGE] = 7
    with pytest.raises(DatabaseReplaced, match="incident_change 7 had been issued"):
        await database.write(write, "one", [1])
    assert await database.read(load) == []
    last = select(sequences.c.value).where(sequences.c.name == INCIDENT_CHANGE)
    assert await database.read(lambda connection: connection.scalar(last)) == 0
