"""Sessions of PostgreSQL are bounded, so that nobody waits long for one that is gone."""

from __future__ import annotations

import contextlib
import socket

import asyncpg
import pytest
from sqlalchemy import text

from tocsin.store import DatabaseFault, find_fault, find_missing_limits, open_database
from tocsin.store import postgres as store_postgres

pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture
async def open_hasty(migrated_url, monkeypatch):
    """Opens the database with other limits than those of a node."""
    async with contextlib.AsyncExitStack() as stack:

        def open_it(**limits: str):
            changed = {**store_postgres.SESSION_LIMITS, **limits}
            monkeypatch.setattr(store_postgres, "SESSION_LIMITS", changed)
            database = open_database(migrated_url)
            stack.push_async_callback(database.close)
            return database

        yield open_it


@pytest.fixture
async def outside(migrated_url):
    """A connection that is not a node's."""
    connection = await asyncpg.connect(migrated_url.render_as_string(hide_password=False))
    yield connection
    await connection.close()


async def test_every_session_has_its_limits_on_the_server(database):
    assert await database.read(find_missing_limits) == []
    assert await database.write(find_missing_limits) == []


async def test_this_side_gives_up_on_a_silent_server_too(database):
    def read(connection) -> tuple[int, ...]:
        driver = connection.connection.driver_connection
        connected = driver._transport.get_extra_info("socket")
        wanted = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE)]
        wanted += [(socket.IPPROTO_TCP, getattr(socket, name)) for name in names]
        return tuple(connected.getsockopt(*option) for option in wanted)

    names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
    assert await database.read(read) == (1, 10, 5, 4, 30_000)


async def test_a_limit_that_was_dropped_is_found(database):
    def drop_and_find(connection) -> list[str]:
        connection.execute(text("SET LOCAL lock_timeout = 0"))
        return find_missing_limits(connection)

    found = await database.write(drop_and_find)
    assert found == ["lock_timeout: found 0, expected 15000"]


async def test_no_lock_is_awaited_for_ever(open_hasty, outside):
    database = open_hasty(lock_timeout="50")
    transaction = outside.transaction()
    await transaction.start()
    await outside.execute("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
    with pytest.raises(Exception, match="lock timeout") as caught:
        await database.write(lambda c: c.execute(text("DELETE FROM events")) and None)
    assert find_fault(caught.value) is DatabaseFault.TIMED_OUT
    await transaction.rollback()
    await database.write(lambda c: c.execute(text("DELETE FROM events")) and None)


async def test_no_statement_runs_for_ever(open_hasty):
    database = open_hasty(statement_timeout="50")
    with pytest.raises(Exception, match="statement timeout") as caught:
        await database.read(lambda c: c.execute(text("SELECT pg_sleep(30)")) and None)
    assert find_fault(caught.value) is DatabaseFault.TIMED_OUT


async def test_a_server_that_refuses_the_sign_in_is_a_failure_with_its_reason(migrated_url):
    database = open_database(migrated_url.set(password="wrong"))
    with pytest.raises(Exception, match="password authentication failed") as caught:
        await database.read(find_missing_limits)
    assert find_fault(caught.value) is DatabaseFault.UNREACHABLE
    await database.close()
