"""Months are added once, whoever adds them, and adopt what was stored without them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from sqlalchemy import URL, Connection, make_url, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.util import await_only

from delivery_rows import add_delivery
from partition_rows import add_finished
from postgres import PASSWORD
from tocsin.identifiers import derive_id, first_id, new_id
from tocsin.store import (
    add_month,
    count_others,
    drop_month,
    find_missing_partitions,
    list_months,
    lock_partitions,
    open_database,
    start_of_month,
)
from tocsin.store.tables import deliveries, events

MAY = datetime(2030, 5, 1, tzinfo=UTC)


@pytest.fixture
def database_url(postgres, migrated) -> Iterator[URL]:
    yield make_url(postgres.lend(migrated))
    postgres.take_back()


def find_tables(connection: Connection, id_: str) -> set[str]:
    """Return the partitions with this event, its deliveries and their attempts."""
    queries = (
        "SELECT tableoid::regclass::text FROM events WHERE id = :id",
        "SELECT tableoid::regclass::text FROM deliveries WHERE event_id = :id",
        "SELECT a.tableoid::regclass::text FROM attempts a JOIN deliveries d "
        "ON d.id = a.delivery_id WHERE event_id = :id",
    )
    return {name for query in queries for name in connection.scalars(text(query), {"id": id_})}


async def test_a_new_database_has_months_ahead_without_gaps(database):
    first, *following = await database.read(list_months)
    assert first.start is None
    assert [month.start for month in following] == [
        start_of_month(first.end, number) for number in range(len(following))
    ]
    assert len(following) == 3
    assert await database.read(find_missing_partitions) == []


def test_months_begin_at_the_first_id_of_their_time():
    assert start_of_month(datetime(2026, 11, 28, tzinfo=UTC), 2) == datetime(2027, 1, 1, tzinfo=UTC)
    assert start_of_month(MAY, -5) == datetime(2029, 12, 1, tzinfo=UTC)


async def test_the_server_makes_the_same_first_ids(database):
    def compare(connection: Connection) -> list[tuple[str, str]]:
        query = text("SELECT tocsin_first_id('evt', CAST(:month AS date))")
        months = [start_of_month(MAY, number * 7) for number in range(20)]
        return [
            (first_id("evt", month), connection.scalars(query, {"month": month.date()}).one())
            for month in months
        ]

    assert [ours for ours, theirs in await database.read(compare) if ours != theirs] == []


@pytest.mark.full
async def test_an_event_its_deliveries_and_attempts_are_in_the_same_month(database):
    await database.write(add_month, MAY)
    id_ = await database.write(add_finished, MAY + timedelta(days=30, hours=23, minutes=59))
    suffix = "2030_05"
    tables = await database.read(find_tables, id_)
    assert tables == {f"events_{suffix}", f"deliveries_{suffix}", f"attempts_{suffix}"}


def test_deliveries_sort_as_their_events_do():
    made = [new_id("evt") for _ in range(50)]
    derived = [derive_id("dlv", id_) for id_ in made for _ in range(3)]
    assert len(set(derived)) == 150
    assert [id_[4:14] for id_ in derived[::3]] == [id_[4:14] for id_ in made]
    groups = [derived[at : at + 3] for at in range(0, 150, 3)]
    assert all(max(one) < min(two) for one, two in pairwise(groups))


async def test_what_was_stored_before_its_month_was_there_moves_to_it(database):
    id_ = await database.write(add_finished, MAY)
    later = await database.write(add_finished, MAY + timedelta(days=40))
    assert await database.read(count_others) == 6
    assert await database.write(add_month, MAY)
    assert await database.read(count_others) == 3
    suffix = "2030_05"
    assert await database.read(find_tables, id_) == {
        f"{table}_{suffix}" for table in ("events", "deliveries", "attempts")
    }
    assert later in await database.read(lambda c: c.scalars(select(events.c.id)).all())


@pytest.mark.full
async def test_nodes_that_add_a_month_together_add_it_once(database, migrated_url):
    others = [open_database(migrated_url) for _ in range(3)]
    added = await asyncio.gather(*(each.write(add_month, MAY) for each in (database, *others)))
    assert sorted(added) == [False, False, False, True]
    assert not await database.write(add_month, MAY)
    for other in others:
        await other.close()


@pytest.mark.full
async def test_a_month_that_the_first_partition_covers_is_not_added(database):
    [first, *_] = await database.read(list_months)
    assert not await database.write(add_month, start_of_month(first.end, -1))
    assert (await database.read(list_months))[0] == first


@pytest.mark.full
async def test_a_delivery_is_stored_once_for_each_event_and_destination(database):
    await database.write(add_month, MAY)
    id_ = await database.write(add_finished, MAY)
    with pytest.raises(DBAPIError, match="event_id_destination"):
        await database.write(add_delivery, event=id_, to="soc", id=derive_id("dlv", id_))


@pytest.mark.full
async def test_a_drop_of_a_missing_partition_fails(database):
    await database.write(add_month, MAY)
    [*_, month] = await database.read(list_months)
    await database.write(lambda c: c.execute(text("DROP TABLE attempts_2030_05")) and None)
    assert await database.read(find_missing_partitions) == ["attempts_2030_05"]
    with pytest.raises(DBAPIError, match="attempts_2030_05"):
        await database.write(drop_month, month)
    assert await database.write(add_month, MAY)
    await database.write(drop_month, month)
    assert month not in await database.read(list_months)


@pytest.mark.full
async def test_a_drop_waits_only_a_moment_for_those_who_use_the_tables(database, migrated_url):
    other = open_database(migrated_url)
    async with other._engine.begin() as connection:
        await connection.execute(select(deliveries))
        with pytest.raises(DBAPIError, match="lock timeout"):
            await database.write(lock_partitions, 10)
    await database.write(lock_partitions, 10_000)
    await other.close()


async def test_a_snapshot_keeps_months(database):
    reading, done = asyncio.Event(), asyncio.Event()

    def read(_connection: Connection) -> None:
        reading.set()
        await_only(done.wait())

    task = asyncio.create_task(database.snapshot(read))
    await reading.wait()
    with pytest.raises(DBAPIError, match="lock timeout"):
        await database.write(lock_partitions, 10)
    done.set()
    await task
    await database.write(lock_partitions, 10_000)


@pytest.mark.full
async def test_whoever_may_not_delete_events_changes_no_partitions(database):
    role = "tocsin_partitions_reader"
    create = text(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
    await database.write(lambda connection: connection.execute(create) and None)
    reader = open_database(database._engine.url.set(username=role, password=PASSWORD))
    try:
        [*_, month] = await database.read(list_months)
        for change, which in ((add_month, MAY), (drop_month, month)):
            with pytest.raises(DBAPIError, match="privilege to delete events"):
                await reader.write(change, which)
    finally:
        await reader.close()
        drop = text(f"DROP ROLE {role}")
        await database.write(lambda connection: connection.execute(drop) and None)
