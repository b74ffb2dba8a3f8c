"""The probe says whether something could be stored now, and what keeps it from being stored."""

from __future__ import annotations

import asyncio
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy import Connection, text

from tocsin.store import (
    INCIDENT_NUMBER,
    DatabaseFault,
    DatabaseProbe,
    allot_numbers,
    find_troubled_nodes,
    hold_lock,
    open_database,
    probe,
    record_heartbeat,
    sqlite_file,
)
from tocsin.store.postgres import POOL, PostgresDatabase

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _probe_patiently(monkeypatch):
    """Probe each time, and wait for the answer of a machine that is busy."""
    monkeypatch.setattr(probe, "PROBE_INTERVAL", 0.0)
    monkeypatch.setattr(probe, "PATIENCE", 60.0)


async def recover(probing: DatabaseProbe) -> None:
    """Return when there is no fault any more: a probe may have begun while there was one."""
    async with asyncio.timeout(60):
        while await probing.check() is not None:
            pass


@pytest.fixture
def check_hastily(monkeypatch):
    """Probe with the patience of a fraction of a second."""

    async def check(probing: DatabaseProbe) -> DatabaseFault | None:
        with monkeypatch.context() as hasty:
            hasty.setattr(probe, "PATIENCE", 0.2)
            return await probing.check()

    return check


async def test_a_database_that_takes_writes_has_no_fault(database):
    assert await DatabaseProbe(database).check() is None


@pytest.mark.parametrize("table", ["incidents", "events", "audit"])
@pytest.mark.parametrize("mode", ["ACCESS EXCLUSIVE", "SHARE"])
async def test_a_table_that_is_locked_is_a_fault(
    database, migrated_url, table, mode, check_hastily
):
    if not isinstance(database, PostgresDatabase):
        pytest.skip("SQLite locks the whole file")
    outside = await asyncpg.connect(migrated_url.render_as_string(hide_password=False))
    async with outside.transaction():
        await outside.execute(f"LOCK TABLE {table} IN {mode} MODE")
        probing = DatabaseProbe(database)
        assert await check_hastily(probing) is DatabaseFault.TIMED_OUT
    await recover(probing)
    await outside.close()


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_limit_of_temporary_files_is_no_fault(database):
    def write(connection: Connection) -> None:
        connection.execute(text("SET LOCAL temp_file_limit = '64kB'"))
        probe.write_to_disk(connection)

    await database.write(write)


async def test_the_number_of_the_next_incident_that_is_locked_is_a_fault(
    database, migrated_url, check_hastily
):
    """As a node that is frozen in a transaction leaves it."""
    if isinstance(database, PostgresDatabase):
        outside = await asyncpg.connect(migrated_url.render_as_string(hide_password=False))
        await outside.execute("BEGIN; SELECT * FROM sequences FOR UPDATE")
        probing = DatabaseProbe(database)
        assert await check_hastily(probing) is DatabaseFault.TIMED_OUT
        await outside.close()
    else:
        blocking = sqlite3.connect(sqlite_file(migrated_url), isolation_level=None)
        blocking.execute("BEGIN IMMEDIATE")
        probing = DatabaseProbe(database)
        assert await check_hastily(probing) is DatabaseFault.TIMED_OUT
        blocking.close()
    await recover(probing)


async def test_a_read_only_database_is_a_fault(database):
    if isinstance(database, PostgresDatabase):
        everyone = asyncio.Barrier(POOL)  # each session has settings of its own

        async def set_read_only() -> None:
            async with database._engine.connect() as connection:
                await everyone.wait()
                await connection.execute(text("SET default_transaction_read_only = on"))
                await connection.commit()

        await asyncio.gather(*(set_read_only() for _ in range(POOL)))
    else:
        await database.write(lambda c: c.exec_driver_sql("PRAGMA query_only = ON").close())
    assert await DatabaseProbe(database).check() is DatabaseFault.READ_ONLY


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("suffix", ["", "-wal"])
async def test_nothing_is_stored_in_a_file_that_nobody_will_find(database, migrated_url, suffix):
    probing = DatabaseProbe(database)
    assert await probing.check() is None
    path = Path(f"{migrated_url.database}{suffix}")
    moved = await asyncio.to_thread(path.rename, path.with_suffix(".moved"))
    with pytest.raises(OSError, match="removed or replaced"):
        await database.write(allot_numbers, INCIDENT_NUMBER, 1)
    assert await probing.check() is DatabaseFault.REPLACED
    await asyncio.to_thread(moved.rename, path)
    await recover(probing)


async def test_another_database_behind_the_same_address_is_a_fault(database, monkeypatch):
    probing = DatabaseProbe(database)
    assert await probing.check() is None
    monkeypatch.setattr(probe, "_identify_server", lambda _connection: "another/1")
    probing._identity = "one/1"
    assert await probing.check() is DatabaseFault.REPLACED


async def test_a_node_that_is_silent_or_stuck_is_found_while_it_runs(database, migrated_url):
    """On PostgreSQL a running node holds its advisory lock, on SQLite the lock file."""

    def beat(number, stalled, at):
        return database.write(record_heartbeat, number, f"node-{number}:8080", stalled, at)

    def find(now):
        return database.read(lambda c: [*find_troubled_nodes(c, now)])

    async def check() -> None:
        await beat(1, [], NOW)
        assert await find(NOW + timedelta(seconds=20)) == []
        [silent] = await find(NOW + timedelta(seconds=40))
        assert (silent.name, silent.beat_at, silent.stalled) == ("node-1:8080", NOW, ())
        await beat(1, ["routing"], NOW)
        [stuck] = await find(NOW)
        assert stuck.stalled == ["routing"]

    if not isinstance(database, PostgresDatabase):
        with hold_lock(sqlite_file(migrated_url)):
            await check()
    else:
        ready = asyncio.Event()
        attending = asyncio.create_task(database.attend(1, lambda _topic: ready.set()))
        await ready.wait()
        await check()
        attending.cancel()
        await asyncio.wait([attending])
    async with asyncio.timeout(60):  # the server ends a session a little after its client
        while await find(NOW + timedelta(minutes=5)):  # noqa: ASYNC110 - asks a database
            await asyncio.sleep(0.02)
    await beat(2, [], NOW + timedelta(minutes=5))
    rows = text("SELECT number FROM nodes")
    assert await database.read(lambda c: list(c.scalars(rows))) == [2]


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("may_ask", [True, False])
async def test_a_role_without_rights_beyond_its_database_can_probe(database, migrated_url, may_ask):
    outside = await asyncpg.connect(migrated_url.render_as_string(hide_password=False))
    await outside.execute("CREATE ROLE plain LOGIN PASSWORD 'plain'")
    await outside.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO plain")
    if not may_ask:
        await outside.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
    plain = open_database(migrated_url.set(username="plain", password="plain"))
    try:
        assert await DatabaseProbe(plain).check() is None
    finally:
        await plain.close()
        await outside.execute("GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")
        await outside.execute("DROP OWNED BY plain; DROP ROLE plain")
        await outside.close()
