"""PostgreSQL, through SQLAlchemy's asyncio engine over asyncpg."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from tocsin.errors import OperatorError
from tocsin.store.codec import dumps, loads
from tocsin.store.database import Database, Operation, P

T = TypeVar("T")
POOL = 10
# What libpq calls a parameter, and what asyncpg does
_PARAMETERS = {
    "sslmode": "ssl",
    "connect_timeout": "timeout",
}


def _driver_url(url: URL) -> URL:
    """Return the URL as the driver takes it; OperatorError for parameters that it has not."""
    unknown = sorted(set(url.query) - {*_PARAMETERS, *_PARAMETERS.values()})
    if unknown:
        raise OperatorError(
            f"TOCSIN_DATABASE_URL: unknown parameter {', '.join(unknown)}; "
            f"known are {', '.join(sorted(_PARAMETERS))}"
        )
    query = {_PARAMETERS.get(name, name): value for name, value in url.query.items()}
    return url.set(drivername="postgresql+asyncpg", query=query)


def _make_engine(url: URL) -> AsyncEngine:
    try:
        return create_async_engine(
            _driver_url(url),
            pool_size=POOL,
            max_overflow=0,
            hide_parameters=True,  # they may be hashes and encrypted keys, and errors are logged
            json_serializer=dumps,
            json_deserializer=loads,
        )
    except ModuleNotFoundError as error:
        raise OperatorError(
            "PostgreSQL needs its driver: install the extra with `pip install 'tocsin[postgres]'`"
        ) from error


class PostgresDatabase(Database):
    """A PostgreSQL database that any number of nodes may share."""

    def __init__(self, url: URL) -> None:
        self._engine = _make_engine(url)
        self._reading = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self._under_way = 0
        self._is_idle = asyncio.Event()

    @contextmanager
    def _busy(self) -> Iterator[None]:
        self._under_way += 1
        self._is_idle.clear()
        try:
            yield
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._is_idle.set()

    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `operation` returns."""
        try:
            return await self._read(operation, *args, **kwargs)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
        # the server had closed the connection while it lay in the pool; the others are gone too
        return await self._read(operation, *args, **kwargs)

    async def _read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._busy():
            async with self._reading.connect() as connection:
                return await connection.run_sync(operation, *args, **kwargs)

    async def write(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `operation` returns, once it is committed."""
        with self._busy():
            async with self._engine.begin() as connection:
                return await connection.run_sync(operation, *args, **kwargs)

    async def close(self) -> None:
        """Let what is under way end, then close every connection."""
        if self._under_way:
            await self._is_idle.wait()
        await self._engine.dispose()
