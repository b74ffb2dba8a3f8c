"""When credentials were last used is written off the requests' path, once a minute at most."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from api_callers import until
from tocsin.credentials import (
    ApiClient,
    ApiKey,
    Usage,
    create_api_client,
    create_api_key,
    load_api_client,
    load_api_key,
)
from tocsin.credentials.records import USAGE_INTERVAL

KEY, OTHER, CLIENT = "a" * 16, "b" * 16, "cl_" + "c" * 16


@pytest.fixture
async def usage(database, clock) -> Usage:
    """Usage of two keys and a client that nobody has used yet."""
    common = {
        "description": "",
        "scopes": (),
        "secret_hash": "hash",
        "created_by": "ana",
        "created_at": clock.now(),
        "updated_at": clock.now(),
    }
    for key_id in (KEY, OTHER):
        expires_at = clock.now() + timedelta(days=1)
        key = ApiKey(id=key_id, key_id=key_id, prefix="", name="k", expires_at=expires_at, **common)
        await database.write(create_api_key, key)
    await database.write(
        create_api_client, ApiClient(id=CLIENT, client_id=CLIENT, name="c", **common)
    )
    return Usage(database, clock)


async def last_used(database) -> list[datetime | None]:
    """Return when either key and the client were last used."""
    keys = [await database.read(load_api_key, key_id) for key_id in (KEY, OTHER)]
    client = await database.read(load_api_client, CLIENT)
    return [record.last_used_at for record in (*keys, client)]


async def test_what_was_never_used_was_never_used(database, usage):
    await usage.flush()
    assert await last_used(database) == [None, None, None]


async def test_each_credential_gets_its_own_last_use(database, clock, usage):
    start = clock.now()
    usage.record("key", KEY)
    usage.record("client", CLIENT)
    clock.advance(seconds=10)
    usage.record("key", KEY)
    await usage.flush()
    assert await last_used(database) == [start + timedelta(seconds=10), None, start]


async def test_what_was_written_is_not_written_again(database, clock, usage):
    usage.record("key", KEY)
    await usage.flush()
    forget = text("UPDATE api_keys SET last_used_at = NULL")
    await database.write(lambda c: c.execute(forget) and None)
    await usage.flush()
    assert await last_used(database) == [None, None, None]


async def test_a_node_that_writes_late_does_not_turn_time_back(database, clock, usage):
    late = Usage(database, clock)
    late.record("key", KEY)
    clock.advance(seconds=10)
    usage.record("key", KEY)
    await usage.flush()
    await late.flush()
    assert (await last_used(database))[0] == clock.now()


async def test_nothing_else_of_the_record_changes(database, clock, usage):
    before = await database.read(load_api_key, KEY)
    clock.advance(minutes=1)
    usage.record("key", KEY)
    await usage.flush()
    after = await database.read(load_api_key, KEY)
    assert after == replace(before, last_used_at=clock.now())


async def test_a_credential_that_is_gone_is_passed_over(database, clock, usage):
    usage.record("key", "x" * 16)
    usage.record("key", OTHER)
    await usage.flush()
    assert await last_used(database) == [None, clock.now(), None]


async def test_what_could_not_be_written_is_kept_under_whatever_came_since(database, clock, usage):
    start = clock.now()
    usage.record("key", KEY)
    usage.record("client", CLIENT)
    await _rename(database, "api_clients", "away")
    writing = asyncio.create_task(usage.flush())
    await until(lambda: not usage._uses)
    clock.advance(seconds=10)
    usage.record("key", KEY)
    with pytest.raises(SQLAlchemyError):
        await writing
    await _rename(database, "away", "api_clients")
    assert await last_used(database) == [None, None, None], "it is one transaction"
    await usage.flush()
    assert await last_used(database) == [clock.now(), None, start]


async def _rename(database, before: str, after: str) -> None:
    await database.write(
        lambda c: c.execute(text(f"ALTER TABLE {before} RENAME TO {after}")) and None
    )


async def test_it_is_written_once_a_minute(database, clock, usage):
    minutes = asyncio.Semaphore(0)

    class Waiting(type(clock)):
        """Sleeps until the test lets a minute pass."""

        slept = 0

        async def sleep(self, duration: timedelta) -> None:
            assert duration == USAGE_INTERVAL == timedelta(minutes=1)
            self.slept += 1
            await minutes.acquire()

    waiting = Waiting()
    usage = Usage(database, waiting)
    running = asyncio.create_task(usage.run())
    await until(lambda: waiting.slept == 1)
    usage.record("key", KEY)
    assert await last_used(database) == [None, None, None]
    minutes.release()
    await until(lambda: waiting.slept == 2)
    assert await last_used(database) == [clock.now(), None, None]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
