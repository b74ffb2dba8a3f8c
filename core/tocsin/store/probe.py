"""Probe of the database: a timed write that shows whether intake could store something now."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import structlog
from sqlalchemy import Connection, select, text

from tocsin.errors import OperatorError
from tocsin.store.database import Database
from tocsin.store.faults import DatabaseFailure, DatabaseFault, find_fault
from tocsin.store.schema import check_schema
from tocsin.store.statements import INCIDENT_CHANGE, allot_numbers
from tocsin.store.tables import deliveries, events, incidents, metadata

PROBE_INTERVAL = 1.0
"""How many seconds a result is shared, so that callers cannot make the probe expensive."""
PATIENCE = 5.0
"""How many seconds a write can take before it counts as failed."""
_SPACE_INTERVAL = 60.0  # seconds between tests of the disk, each of which writes half a mebibyte
_LOCK_SECONDS = 4  # for the server to name the lock as the cause before our patience ends
_WRITE_TO_DISK = text("""
SELECT count(*) FROM generate_series(1, 32768)
WHERE pg_size_bytes(current_setting('temp_file_limit')) NOT BETWEEN 0 AND 1048575
""")
"""Needs more memory than `work_mem` allows, and is not run if the limit is less than it needs."""
_log = structlog.get_logger()


class DatabaseProbe:
    """Finds out whether the database accepts writes, for any number of callers at once."""

    def __init__(
        self,
        database: Database,
        record: Callable[[Connection], None] | None = None,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Probe a database; `record` is written in the same transaction."""
        self._database = database
        self._record = record
        self._monotonic = monotonic
        self._running: asyncio.Task[None] | None = None
        self._ended_at: float | None = None
        self._identity: str | None = None
        self._found: tuple[DatabaseFault, str] | None = None
        self._logged: DatabaseFault | None = None
        self._tests_space_at = monotonic()

    async def check(self) -> DatabaseFault | None:
        """Return the fault that keeps the database from accepting writes, None if it accepts them.

        A result is returned for a second; callers that come meanwhile wait for the same write, for
        five seconds at most.
        """
        if self._is_recent():
            return self._report(self._found)
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        await asyncio.wait({self._running}, timeout=PATIENCE)
        if self._running is not None:
            reason = f"a write did not finish within {PATIENCE:g} seconds"
            return self._report((DatabaseFault.TIMED_OUT, reason))
        return self._report(self._found)

    def _is_recent(self) -> bool:
        ended = self._ended_at
        return ended is not None and self._monotonic() - ended < PROBE_INTERVAL

    async def _run(self) -> None:
        try:
            self._found = await self._find_fault()
        finally:
            self._ended_at = self._monotonic()
            self._running = None

    async def _find_fault(self) -> tuple[DatabaseFault, str] | None:
        try:
            self._database.check_identity()
            await check_schema(self._database)
            await self._database.write(self._write)
            await self._test_space()
        except Exception as error:  # noqa: BLE001 - whatever fails, nothing can be stored
            is_outdated = isinstance(error, OperatorError)
            otherwise = DatabaseFault.SCHEMA if is_outdated else DatabaseFault.UNREACHABLE
            return find_fault(error) or otherwise, str(getattr(error, "orig", None) or error)
        return None

    async def _test_space(self) -> None:
        """Test the disk once a minute, and each time while it is full."""
        if self._monotonic() >= self._tests_space_at:
            await self._database.write(write_to_disk)
            self._tests_space_at = self._monotonic() + _SPACE_INTERVAL

    def _write(self, connection: Connection) -> None:
        found = _identify_server(connection)
        self._identity = self._identity or found
        if found != self._identity:
            reason = f"connected to the database {found} instead of {self._identity}"
            raise DatabaseFailure(reason, DatabaseFault.REPLACED)
        if self._record is not None:
            self._record(connection)
        write_as_intake(connection)

    def _report(self, found: tuple[DatabaseFault, str] | None) -> DatabaseFault | None:
        """Return the fault; it is logged when it appears, and when it is over."""
        fault, reason = found or (None, "")
        if fault is not None and fault is not self._logged:
            _log.warning(fault.summary, reason=reason, advice=fault.advice)
        elif fault is None and self._logged is not None:
            _log.info("database accepts writes again")
        self._logged = fault
        return fault


async def require_writable(database: Database) -> None:
    """Return once a write is stored; raises what a write raises, or DatabaseFailure."""
    try:
        async with asyncio.timeout(PATIENCE):
            await database.write(write_as_intake)
            await database.write(write_to_disk)
    except TimeoutError:
        reason = f"a write did not finish within {PATIENCE:g} seconds"
        raise DatabaseFailure(reason, DatabaseFault.TIMED_OUT) from None


def write_as_intake(connection: Connection) -> None:
    """Take the locks that storing an incident takes, and write; nothing visible changes.

    It reads the ends of the tables first, where new rows go: a damaged page is found there.
    """
    if connection.dialect.name == "postgresql":
        tables = ", ".join(f'"{name}"' for name in metadata.tables)
        connection.execute(text(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'"))
        connection.execute(text(f"LOCK TABLE {tables} IN ROW EXCLUSIVE MODE"))
    for table in (incidents, events, deliveries):
        [key] = table.primary_key
        connection.execute(select(table).order_by(key.desc()).limit(1)).all()
    allot_numbers(connection, INCIDENT_CHANGE, 0)


def write_to_disk(connection: Connection) -> None:
    """Write a temporary file to the disk of a PostgreSQL database; it fails if the disk is full.

    Updates of existing rows need no room, so they succeed when new rows cannot be stored any more.
    Writes nothing if the server limits temporary files to less than this one.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL work_mem = '64kB'"))
        connection.execute(text("SET LOCAL temp_tablespaces = ''"))
        connection.execute(_WRITE_TO_DISK)


def _identify_server(connection: Connection) -> str:
    """Return what tells PostgreSQL's cluster and database from any other; empty for SQLite.

    Without the right to know the cluster, it is the database alone.
    """
    if connection.dialect.name != "postgresql":
        return ""
    known = "oid::text, has_function_privilege('pg_control_system()', 'execute')"
    query = f"SELECT {known} FROM pg_database WHERE datname = current_database()"  # noqa: S608
    oid, may_ask = connection.execute(text(query)).one()
    if not may_ask:
        return str(oid)
    cluster = text("SELECT system_identifier FROM pg_control_system()")
    return f"{connection.execute(cluster).scalar_one()}/{oid}"
