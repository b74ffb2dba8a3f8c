"""Whole months are dropped, and only those of which nothing is needed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import URL, Connection, func, make_url, select, update

from delivery_rows import NOW, add_delivery
from partition_rows import add_finished
from tocsin.delivery import remove_events, replay_delivery
from tocsin.delivery.history.retention import remove_month
from tocsin.identifiers import derive_id
from tocsin.metrics import Metrics
from tocsin.retention import GrowthGauges, Retention, RetentionRule
from tocsin.retention.growth import measure_growth
from tocsin.store import (
    Archive,
    add_month,
    is_analyzed,
    list_months,
    load_events_kept_from,
    open_database,
    start_of_month,
)
from tocsin.store.tables import attempts, deliveries, events
from tocsin.testing import ManualClock

KEEP = timedelta(days=40)
MAY = datetime(2030, 5, 1, tzinfo=UTC)
JUNE, JULY = start_of_month(MAY, 1), start_of_month(MAY, 2)


@pytest.fixture
def database_url(postgres, migrated) -> Iterator[URL]:
    yield make_url(postgres.lend(migrated))
    postgres.take_back()


def set_clock(clock: ManualClock, moment: datetime) -> None:
    clock.advance(seconds=(moment - clock.now()).total_seconds())


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(JULY + timedelta(days=10))


@pytest.fixture
async def months(database):
    """May, June and July have partitions."""
    for month in (MAY, JUNE, JULY):
        await database.write(add_month, month)


@pytest.fixture
def remove_old(database, clock):
    async def remove_old(archive: Archive | None = None) -> int:
        rules = [RetentionRule("events", KEEP, remove_events, by_month=True)]
        return await Retention(database, clock, rules, archive).remove_old()

    return remove_old


@pytest.fixture
def count(database):
    async def count() -> tuple[int, ...]:
        def read(connection: Connection) -> tuple[int, ...]:
            tables = (events, deliveries, attempts)
            return tuple(
                connection.scalars(select(func.count()).select_from(table)).one()
                for table in tables
            )

        return await database.read(read)

    return count


async def find_starts(database) -> list[datetime | None]:
    return [month.start for month in await database.read(list_months)]


async def test_an_old_month_goes_as_a_whole(database, months, remove_old, count, clock):
    for day in range(0, 31, 10):
        await database.write(add_finished, MAY + timedelta(days=day))
    await database.write(add_finished, MAY + timedelta(days=3), "dead")
    await database.write(add_finished, JUNE)
    assert await remove_old() == 0  # no row was removed by itself
    assert await count() == (1, 1, 1)
    assert MAY not in await find_starts(database)
    assert JUNE in await find_starts(database)
    assert await database.read(load_events_kept_from) == clock.now() - KEEP


@pytest.mark.full
async def test_a_month_is_kept_until_all_of_it_is_old(database, months, remove_old, count, clock):
    await database.write(add_finished, MAY)
    set_clock(clock, JUNE + KEEP - timedelta(seconds=1))
    await remove_old()
    assert await count() == (1, 1, 1)
    clock.advance(seconds=1)
    await remove_old()
    assert await count() == (0, 0, 0)


@pytest.mark.full
@pytest.mark.parametrize("state", ["pending", "on_hold"])
async def test_a_month_with_a_waiting_delivery_loses_the_other_events(
    database, months, remove_old, count, state
):
    await database.write(add_finished, MAY)
    await database.write(add_finished, MAY + timedelta(days=2), state)
    assert await remove_old() == 1
    assert await count() == (1, 1, 1)
    assert MAY in await find_starts(database)

    def finish(connection: Connection) -> None:
        connection.execute(update(deliveries).values(state="delivered"))

    await database.write(finish)
    await remove_old()
    assert MAY not in await find_starts(database)


@pytest.mark.full
async def test_a_month_with_an_unrouted_event_is_kept(database, months, remove_old, count):
    await database.write(add_finished, MAY, routed=False)
    assert await remove_old() == 0
    assert await count() == (1, 1, 1)


@pytest.mark.full
async def test_a_month_with_a_young_event_is_kept(database, months, remove_old, count, clock):
    """So if a node's clock was behind."""
    id_ = await database.write(add_finished, MAY)

    def rejuvenate(connection: Connection) -> None:
        connection.execute(update(events).where(events.c.id == id_).values(timestamp=clock.now()))

    await database.write(rejuvenate)
    assert await remove_old() == 0
    assert await count() == (1, 1, 1)


@pytest.mark.full
@pytest.mark.parametrize("times", [(MAY, JUNE), (JUNE, MAY)], ids=["later", "earlier"])
async def test_events_that_two_months_share_keep_neither(
    database, months, remove_old, clock, times
):
    """Versions from before partitions give deliveries the time at which they are routed."""
    event_at, delivery_at = times

    def add(connection: Connection) -> None:
        other = add_finished(connection, delivery_at)
        id_ = add_finished(connection, event_at)
        add_delivery(connection, "delivered", event=id_, to="late", id=derive_id("dlv", other))

    await database.write(add)
    set_clock(clock, JULY + KEEP)
    assert await remove_old() == 0
    assert not {MAY, JUNE} & set(await find_starts(database))


@pytest.mark.full
async def test_what_is_from_before_partitions_goes_by_row_and_its_partition_once_it_is_old(
    database, remove_old, clock
):
    [first, *_] = await database.read(list_months)
    set_clock(clock, first.end + timedelta(days=20))
    await database.write(add_finished, first.end - timedelta(days=21))
    await database.write(add_finished, first.end - timedelta(days=19))
    assert await remove_old() == 1
    set_clock(clock, first.end + KEEP)
    assert await remove_old() == 0
    assert None not in await find_starts(database)


async def test_what_belongs_to_no_month_goes_by_row(database, remove_old, count):
    await database.write(add_finished, MAY)
    assert await remove_old() == 1
    assert await count() == (0, 0, 0)


@pytest.mark.full
async def test_with_an_archive_a_month_goes_once_all_of_it_is_archived(
    database, months, remove_old, count, tmp_path
):
    await database.write(add_finished, MAY)
    await database.write(add_finished, JUNE)
    archive = Archive(tmp_path / "archive")
    await remove_old(archive)
    await remove_old(archive)
    assert MAY not in await find_starts(database)
    assert await count() == (1, 1, 1)
    assert [path.name[:21] for path in (tmp_path / "archive").iterdir()] == [
        "deliveries-2030-05-01"
    ]


@pytest.mark.full
async def test_a_replay_at_that_moment_keeps_the_month(database, months, migrated_url, clock):
    await database.write(add_finished, MAY, "dead")
    [month] = [each for each in await database.read(list_months) if each.start == MAY]
    id_ = await database.read(lambda c: c.scalars(select(deliveries.c.id)).one())
    other = open_database(migrated_url)
    await asyncio.gather(
        other.write(replay_delivery, id_, NOW),
        database.write(remove_month, month, JULY, None),
        return_exceptions=True,
    )
    left = await database.read(lambda c: c.scalars(select(deliveries.c.state)).all())
    assert left in ([], ["pending"])
    assert (MAY in await find_starts(database)) == bool(left)
    await other.close()


@pytest.mark.full
async def test_nodes_that_remove_together_drop_a_month_once(
    database, months, migrated_url, clock, count
):
    await database.write(add_finished, MAY)
    others = [open_database(migrated_url) for _ in range(3)]
    rules = [RetentionRule("events", KEEP, remove_events, by_month=True)]
    nodes = (database, *others)
    await asyncio.gather(*(Retention(node, clock, rules, None).remove_old() for node in nodes))
    assert await count() == (0, 0, 0)
    for other in others:
        await other.close()


@pytest.mark.full
async def test_a_month_that_others_use_is_dropped_when_they_have_finished(
    database, months, migrated_url, remove_old, count
):
    await database.write(add_finished, MAY)
    other = open_database(migrated_url)
    waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"
    async with other._engine.begin() as connection:
        await connection.execute(select(events))
        removal = asyncio.create_task(remove_old())
        while not (await connection.exec_driver_sql(waits)).scalar_one():
            pass
    await removal
    assert await count() == (0, 0, 0)
    await other.close()


@pytest.mark.full
async def test_months_are_added_ahead_as_time_passes(database, clock):
    retention = Retention(database, clock, [], None)
    set_clock(clock, MAY)
    await retention._partitions.add_months()
    starts = await find_starts(database)
    assert starts[-4:] == [start_of_month(MAY, ahead) for ahead in range(4)]
    set_clock(clock, start_of_month(MAY, 1))
    await retention._partitions.add_months()
    assert (await find_starts(database))[-1] == start_of_month(MAY, 4)


@pytest.mark.full
async def test_the_planner_knows_the_tables_as_a_whole(database, months, clock):
    await database.write(add_finished, MAY)
    assert not await database.read(is_analyzed)
    retention = Retention(database, clock, [], None)
    await retention._partitions.add_months()
    assert await database.read(is_analyzed)


async def test_the_metrics_show_the_last_month_and_what_has_none(database, months):
    await database.write(add_finished, start_of_month(MAY, 6))
    growth = await database.read(measure_growth)
    assert growth.last_month == start_of_month(JULY, 1)
    assert growth.others == 3
    metrics = Metrics(ManualClock())
    GrowthGauges(metrics).show(growth)
    shown = (await metrics.expose()).decode()
    assert "tocsin_partitions_other_rows 3.0" in shown
    assert 'tocsin_partitions_end_timestamp_seconds{table="events"}' in shown
    assert set(growth.bytes) >= {"events", "deliveries", "attempts"}
    assert growth.bytes["events"] > 0
