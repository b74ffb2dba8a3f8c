"""A process that is killed while it changes partitions leaves them as they were, or changed."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from delivery_rows import add_delivery, rows
from partition_rows import add_finished
from tocsin.store import (
    Database,
    find_missing_partitions,
    list_months,
    open_database,
    parse_url,
    start_of_month,
    upgrade,
)
from tocsin.store.schema import create_schema

pytestmark = pytest.mark.full
MAY = datetime(2030, 5, 1, tzinfo=UTC)
UPGRADE = """
import asyncio, sys
from tocsin.store import open_database, parse_url, upgrade

async def run():
    database = open_database(parse_url(sys.argv[1]))
    print("begun", flush=True)
    await upgrade(database)
    print("done", flush=True)

asyncio.run(run())
"""
CHANGES = """
import asyncio, sys
from datetime import UTC, datetime
from tocsin.delivery import remove_month
from tocsin.store import add_month, list_months, open_database, parse_url

async def run():
    database = open_database(parse_url(sys.argv[1]))
    may = datetime(2030, 5, 1, tzinfo=UTC)
    while True:
        await database.write(add_month, may)
        print("begun", flush=True)
        [*_, month] = await database.read(list_months)
        assert await database.write(remove_month, month, datetime(2031, 1, 1, tzinfo=UTC), None)

asyncio.run(run())
"""


@pytest.fixture
def url(postgres, tmp_path) -> str:
    return postgres.create(f"kills_{tmp_path.name}"[:60])


@pytest.fixture
async def database(url) -> AsyncIterator[Database]:
    database = open_database(parse_url(url))
    yield database
    await database.close()


async def run_and_kill(program: str, url: str, seconds: float) -> None:
    """Run a program, and kill it so many seconds after it has begun, unless it ends before."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, url, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"begun\n"
    await asyncio.sleep(seconds)
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


@pytest.mark.timeout(300)
async def test_kills_while_partitions_change_leave_all_or_nothing(database, url):
    await upgrade(database)
    chance = random.Random(7)
    for _ in range(12):
        await run_and_kill(CHANGES, url, chance.uniform(0, 0.3))
        # the server notices at its next answer that nobody is there
        async with asyncio.timeout(10):
            while await database.read(find_missing_partitions):
                pass
    starts = {month.start for month in await database.read(list_months)}
    assert starts <= {MAY} | {start_of_month(MAY, -number) for number in range(60)} | {None}


@pytest.mark.timeout(300)
async def test_an_upgrade_that_is_killed_at_any_moment_is_completed(database, url):
    await database.write(create_schema, "0040")
    for _ in range(20):
        await database.write(add_delivery)
    before = await database.read(rows)
    chance = random.Random(7)
    for _ in range(8):
        await run_and_kill(UPGRADE, url, chance.uniform(0, 0.6))
    await upgrade(database)
    assert await database.read(rows) == before
    assert await database.read(find_missing_partitions) == []
    assert len(await database.read(list_months)) == 4
    assert await database.write(add_finished, MAY)
