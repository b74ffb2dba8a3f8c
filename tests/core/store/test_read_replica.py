"""Reads from a replica: here, a database that is its own replica, and one that never follows."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.util import await_only

from tocsin.clock import SystemClock
from tocsin.errors import NotFoundError, OperatorError
from tocsin.settings import Settings
from tocsin.store import (
    FallbackReason,
    Freshness,
    ReadReplica,
    load_freshness,
    mark_write,
    parse_urls,
    record_heartbeat,
)
from tocsin.store.postgres import POOL, PostgresDatabase
from tocsin.store.read_replica import MOST_READS

NODE, OTHER = 1, 2
LAG = 5.0

pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


class Monotonic:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Monotonic:
    return Monotonic()


@pytest.fixture
def outcomes() -> list[FallbackReason | None]:
    return []


@pytest.fixture
def open_replica(database, time, outcomes):
    @asynccontextmanager
    async def open_replica(url):
        replica = ReadReplica(
            PostgresDatabase(url, is_replica=True),
            database,
            SystemClock(),
            NODE,
            max_lag=timedelta(seconds=LAG),
            count=outcomes.append,
            monotonic=time,
        )
        now = SystemClock().now()
        await database.write(record_heartbeat, NODE, "soc-1:8080", (), now, roles=["api"])
        try:
            yield replica
        finally:
            await replica.close()

    return open_replica


@pytest.fixture
async def replica(open_replica, migrated_url):
    async with open_replica(migrated_url) as replica:
        yield replica


def is_read_only(connection) -> bool:
    return connection.scalar(text("SHOW default_transaction_read_only")) == "on"


async def test_a_replica_that_shows_the_latest_beat_answers(replica, database, outcomes):
    await replica.measure()
    found, age = await replica.read(await database.read(load_freshness, "ana"), is_read_only)
    assert (found, age, outcomes) == (True, 0, [None])


@pytest.mark.parametrize(("seconds", "outcome"), [(LAG, None), (LAG + 1, FallbackReason.LAGGING)])
async def test_the_limit_of_the_lag_is_kept_between_measurements(
    replica, time, outcomes, seconds, outcome
):
    await replica.measure()
    time.now += seconds
    found, age = await replica.read(Freshness(0, 0, is_known=True), is_read_only)
    assert (found, age) == ((True, LAG) if outcome is None else (False, None))
    assert outcomes == [outcome]


async def test_nothing_is_read_from_a_replica_before_the_first_measurement(
    replica, database, outcomes
):
    await replica.read(await database.read(load_freshness, "ana"), is_read_only)
    assert outcomes == [FallbackReason.UNMARKED]


@pytest.fixture
def stale_url(postgres, migrated):
    yield make_url(postgres.create("stale", migrated))
    postgres.drop("stale")


async def test_another_database_than_a_replica_never_answers(
    open_replica, stale_url, database, outcomes
):
    async with open_replica(stale_url) as replica:
        await replica.measure()
        await replica.read(await database.read(load_freshness, "ana"), is_read_only)
        assert (replica.lag, outcomes) == (None, [FallbackReason.LAGGING])


async def test_a_server_that_is_away_leaves_reads_to_the_primary(
    open_replica, migrated_url, database, outcomes
):
    async with open_replica(migrated_url.set(port=1)) as replica:
        await replica.measure()
        found, _ = await replica.read(await database.read(load_freshness, "ana"), is_read_only)
        assert (found, outcomes) == (False, [FallbackReason.UNREACHABLE])


async def test_slow_reads_on_all_connections_do_not_make_the_replica_count_as_lost(
    replica, database, outcomes
):
    await replica.measure()
    freshness = await database.read(load_freshness, "ana")
    assert MOST_READS < POOL
    begun, ended = asyncio.Semaphore(0), asyncio.Event()

    def wait(connection) -> bool:
        begun.release()
        await_only(ended.wait())
        return is_read_only(connection)

    slow = []
    for _ in range(MOST_READS):
        slow.append(asyncio.create_task(replica.read(freshness, wait)))
        await begun.acquire()
    found, _ = await replica.read(freshness, is_read_only)
    await replica.measure()
    ended.set()
    assert [found for found, _ in await asyncio.gather(*slow)] == [True] * MOST_READS
    assert (found, replica.lag is not None) == (False, True)
    assert outcomes == [FallbackReason.BUSY] + [None] * MOST_READS


async def test_a_problem_on_the_replica_is_decided_by_the_primary(replica, database, outcomes):
    await replica.measure()

    def find(connection) -> str:
        if is_read_only(connection):
            raise NotFoundError("not here yet")
        return "found"

    found, _ = await replica.read(await database.read(load_freshness, "ana"), find)
    assert (found, outcomes) == ("found", [FallbackReason.PROBLEM])


async def test_a_write_on_the_replica_is_refused(replica, database, outcomes):
    await replica.measure()
    freshness = await database.read(load_freshness, "ana")
    await replica.read(freshness, lambda c: c.execute(text("UPDATE sequences SET value = 0")))
    assert len(outcomes) == 1
    assert outcomes[0] is not None


async def test_a_mark_that_differs_leaves_the_read_to_the_primary(replica, database, outcomes):
    await replica.measure()
    before = await database.read(load_freshness, "ana")
    everyone = await database.read(load_freshness, None)
    await database.write(mark_write, "ana")
    for freshness in (before, everyone, await database.read(load_freshness, "ana")):
        await replica.read(freshness, is_read_only)
    assert outcomes == [FallbackReason.BEHIND, FallbackReason.BEHIND, None]


@pytest.mark.parametrize(
    ("roles", "outcome"),
    [(["api"], FallbackReason.UNMARKED), (["deliver"], None)],
)
async def test_a_node_of_the_api_that_marks_no_writes_keeps_reads_on_the_primary(
    replica, database, outcomes, roles, outcome
):
    await replica.measure()
    now = SystemClock().now()
    await database.write(record_heartbeat, OTHER, "soc-2:8080", (), now, roles=roles)
    await replica.read(await database.read(load_freshness, "ana"), is_read_only)
    assert outcomes == [outcome]


def test_a_read_url_requires_postgresql(tmp_path, database_url):
    settings = Settings(data_dir=tmp_path, database_read_url="postgresql://u@h/d")
    with pytest.raises(OperatorError, match="TOCSIN_DATABASE_READ_URL: only PostgreSQL"):
        parse_urls(settings)
