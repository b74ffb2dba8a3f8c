"""Opening a database that is there already: commands other than `serve` never create one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from tocsin.errors import OperatorError
from tocsin.settings import Settings
from tocsin.store import Database, check_schema, is_sqlite, open_database, parse_url

T = TypeVar("T")


def run_on_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    """Return what `work` returns; OperatorError where there is no database with this schema."""
    url = parse_url(settings.database)
    if is_sqlite(url) and not Path(str(url.database)).exists():
        raise OperatorError(
            f"there is no database at {Path(str(url.database)).resolve()}; start `tocsin serve` "
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
