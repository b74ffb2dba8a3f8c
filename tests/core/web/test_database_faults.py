"""A fault of the database is 503 with one log line, whatever its class, and never a bug."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import asyncpg
import pytest
import structlog
from sqlalchemy.exc import DBAPIError

from api_server import PUSH_TOKEN, PUSHED, problem
from tocsin.logs import SampledLog
from tocsin.store import DatabaseFault, find_fault
from tocsin.store.postgres import PostgresDatabase
from tocsin.web import problems

PUSH = {"Authorization": f"Bearer {PUSH_TOKEN}"}


def error_of(state: str = "", code: int = 0) -> DBAPIError:
    """Return what SQLAlchemy raises for a SQLSTATE of PostgreSQL or a result code of SQLite."""
    original = sqlite3.OperationalError("said by the database")
    if state:
        original.sqlstate = state
    original.sqlite_errorcode = code
    return DBAPIError("INSERT", {}, original)


@pytest.mark.parametrize(
    ("state", "fault"),
    [
        (asyncpg.CannotConnectNowError, DatabaseFault.UNREACHABLE),
        (asyncpg.TooManyConnectionsError, DatabaseFault.UNREACHABLE),
        (asyncpg.InvalidPasswordError, DatabaseFault.UNREACHABLE),
        (asyncpg.InvalidCatalogNameError, DatabaseFault.UNREACHABLE),
        (asyncpg.QueryCanceledError, DatabaseFault.TIMED_OUT),
        (asyncpg.LockNotAvailableError, DatabaseFault.TIMED_OUT),
        (asyncpg.IdleInTransactionSessionTimeoutError, DatabaseFault.TIMED_OUT),
        (asyncpg.DeadlockDetectedError, DatabaseFault.TIMED_OUT),
        (asyncpg.ReadOnlySQLTransactionError, DatabaseFault.READ_ONLY),
        (asyncpg.DiskFullError, DatabaseFault.FULL),
        (asyncpg.PostgresIOError, DatabaseFault.IO_ERROR),
        (asyncpg.DataCorruptedError, DatabaseFault.DAMAGED),
        (asyncpg.IndexCorruptedError, DatabaseFault.DAMAGED),
        (asyncpg.UniqueViolationError, None),
        (asyncpg.UndefinedColumnError, None),
    ],
)
def test_each_state_of_postgresql_has_its_class(state, fault):
    assert find_fault(error_of(state=state.sqlstate)) is fault


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (sqlite3.SQLITE_BUSY_SNAPSHOT, DatabaseFault.TIMED_OUT),
        (sqlite3.SQLITE_READONLY_DBMOVED, DatabaseFault.READ_ONLY),
        (sqlite3.SQLITE_FULL, DatabaseFault.FULL),
        (sqlite3.SQLITE_IOERR_WRITE, DatabaseFault.IO_ERROR),
        (sqlite3.SQLITE_IOERR_SHMSIZE, DatabaseFault.FULL),
        (sqlite3.SQLITE_CORRUPT_INDEX, DatabaseFault.DAMAGED),
        (sqlite3.SQLITE_NOTADB, DatabaseFault.DAMAGED),
        (sqlite3.SQLITE_CANTOPEN, DatabaseFault.UNREACHABLE),
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, None),
    ],
)
def test_each_code_of_sqlite_has_its_class(code, fault):
    assert find_fault(error_of(code=code)) is fault


@pytest.fixture
async def make_read_only(api, migrated_url) -> Callable[[], object]:
    """Make the database of the API read-only, as a standby is."""

    async def make() -> None:
        database = api.services.database
        if not isinstance(database, PostgresDatabase):
            await database.write(lambda c: c.exec_driver_sql("PRAGMA query_only = ON").close())
            return
        outside = await asyncpg.connect(migrated_url.render_as_string(hide_password=False))
        name = migrated_url.database
        await outside.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        await outside.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
        await outside.close()
        await database.read(lambda c: c.exec_driver_sql("SELECT 1").close())

    yield make
    if isinstance(api.services.database, PostgresDatabase):
        outside = await asyncpg.connect(migrated_url.render_as_string(hide_password=False))
        await outside.execute("SET default_transaction_read_only = off")
        await outside.execute(f'ALTER DATABASE "{migrated_url.database}" RESET ALL')
        await outside.close()


async def test_a_push_to_a_read_only_database_is_to_be_sent_again(api, make_read_only, monkeypatch):
    monkeypatch.setattr(problems, "_sampled", SampledLog())  # the other database was just logged
    await make_read_only()
    with structlog.testing.capture_logs() as logs:
        response = await api.client.post(
            f"/api/push/{PUSHED}", json={"external_id": "1"}, headers=PUSH
        )
    document = await problem(response, 503)
    assert int(response.headers["Retry-After"]) > 0
    assert document["detail"] == "The database is unavailable (read-only); try again later."
    [line] = [line for line in logs if line["log_level"] != "info"]
    assert (line["event"], line["log_level"]) == ("database read-only", "warning")
    assert "exc_info" not in line
