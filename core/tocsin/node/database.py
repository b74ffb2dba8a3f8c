"""Database of a node: opened and checked, with the time by its clock."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import datetime, timedelta

from tocsin.clock import Clock
from tocsin.store import (
    Database,
    DatabaseUrls,
    check_schema,
    is_sqlite,
    measure_offset,
    open_database,
    sqlite_file,
    upgrade,
)


async def load_shared_time(database: Database, clock: Clock) -> datetime:
    """Return the time of the database's clock, so that all nodes agree on when work is due."""
    offset: timedelta | None = await database.read(measure_offset, clock)
    return clock.now() if offset is None else clock.now() - offset


async def open_ready_database(
    urls: DatabaseUrls, stack: AsyncExitStack, *, is_copied: bool = False
) -> Database:
    """Open the database; upgrade its schema with SQLite, or check it with PostgreSQL.

    With `is_copied`, a SQLite file is copied before the upgrade. Raises OperatorError if the
    database cannot be used.
    """
    url = urls.main
    database = open_database(url, urls.sessions)
    stack.push_async_callback(database.close)
    await database.require_sessions()
    if is_sqlite(url):
        await upgrade(database, sqlite_file(url) if is_copied else None)
    await check_schema(database)
    return database
