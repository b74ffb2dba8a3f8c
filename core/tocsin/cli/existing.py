"""Opening a database that is there already: commands other than `serve` never create one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tocsin.errors import OperatorError
from tocsin.settings import Settings
from tocsin.store import Database, check_schema, is_sqlite, open_database, parse_url, sqlite_file

T = TypeVar("T")


def run_on_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    """Return what `work` returns; OperatorError where there is no database with this schema."""
    url = parse_url(settings.database)
    if is_sqlite(url) and not sqlite_file(url).exists():
        raise OperatorError(
            f"there is no database at {sqlite_file(url).resolve()}; start `tocsin serve` "
            "once, or set TOCSIN_DATA_DIR or TOCSIN_DATABASE_URL to where it is"
        )

    async def run() -> T:
        database = open_database(url)
        try:
            await check_schema(database)
            return await work(database)
        finally:
            await database.close()

    return asyncio.run(run())
