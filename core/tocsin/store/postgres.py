"""PostgreSQL, through SQLAlchemy's asyncio engine over asyncpg."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from tocsin.errors import OperatorError
from tocsin.store.database import Database, Operation, P
from tocsin.store.notifications import ALL_TOPICS, CHANNEL, Listener
from tocsin.store.text import dump_json, load_json

T = TypeVar("T")
POOL = 10
# The server notices within half a minute when a node disappears
_KEEPALIVE = {
    "server_settings": {
        "tcp_keepalives_idle": "10",
        "tcp_keepalives_interval": "5",
        "tcp_keepalives_count": "4",
    }
}
_STATEMENT_TIMEOUT = 300  # seconds per statement: longer than any migration
_RETRIED_STATES = (
    "40001",
    "40P01",
)  # serialization_failure, deadlock_detected (appendix A of its manual)
_MAX_TRIES = 3
_HEARTBEAT = 10  # seconds until a lost connection is noticed
# Parameter names of libpq and of asyncpg
_PARAMETERS = {
    "sslmode": "ssl",
    "connect_timeout": "timeout",
}


def _driver_url(url: URL) -> URL:
    """Return the URL for the driver; raises OperatorError for unknown parameters."""
    unknown = sorted(set(url.query) - {*_PARAMETERS, *_PARAMETERS.values()})
    if unknown:
        raise OperatorError(
            f"TOCSIN_DATABASE_URL: unknown parameter {', '.join(unknown)}; "
            f"supported: {', '.join(sorted(_PARAMETERS))}"
        )
    query = {_PARAMETERS.get(name, name): value for name, value in url.query.items()}
    return url.set(drivername="postgresql+asyncpg", query=query)


def _make_engine(url: URL, **pool: Any) -> AsyncEngine:
    try:
        return create_async_engine(
            _driver_url(url),
            **pool,
            hide_parameters=True,  # they may be secrets, and errors are logged
            json_serializer=dump_json,
            json_deserializer=load_json,
        )
    except ModuleNotFoundError as error:
        raise OperatorError(
            "PostgreSQL needs its driver: install the extra with `pip install 'tocsin[postgres]'`"
        ) from error


async def _wait_for_event(event: asyncio.Event, seconds: float) -> bool:
    """Return whether the event is set within this time."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()


class PostgresDatabase(Database):
    """A PostgreSQL database, shared by any number of nodes."""

    def __init__(self, url: URL) -> None:
        self._engine = _make_engine(
            url,
            pool_size=POOL,
            max_overflow=0,
            connect_args={"command_timeout": _STATEMENT_TIMEOUT},
        )
        self._attending = _make_engine(url, poolclass=NullPool, connect_args=_KEEPALIVE)
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
        """Run the operation and return its result."""
        try:
            return await self._read(operation, *args, **kwargs)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
        # the server had closed the pooled connection; the pool has discarded the others too
        return await self._read(operation, *args, **kwargs)

    async def _read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._busy():
            async with self._reading.connect() as connection:
                return await connection.run_sync(operation, *args, **kwargs)

    async def write(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the operation, and return its result once committed.

        The transaction is repeated after a serialization failure or a deadlock.
        """
        for _ in range(_MAX_TRIES - 1):
            try:
                return await self._write(operation, *args, **kwargs)
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) not in _RETRIED_STATES:
                    raise
        return await self._write(operation, *args, **kwargs)

    async def _write(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._busy():
            async with self._engine.begin() as connection:
                return await connection.run_sync(operation, *args, **kwargs)

    async def attend(self, node: int, heard: Listener) -> None:
        """Hold the advisory lock of this node, and listen, until cancelled.

        The lock ends with its session. Raises ConnectionError when the session ends.
        """
        async with self._attending.connect() as connection:
            driver = (await connection.get_raw_connection()).driver_connection
            assert driver is not None  # noqa: S101 - a connected asyncpg connection
            gone = asyncio.Event()
            driver.add_termination_listener(lambda _: gone.set())
            await driver.add_listener(CHANNEL, lambda *notice: heard(notice[-1]))
            await driver.execute("SELECT pg_advisory_lock($1)", node)
            heard(ALL_TOPICS)
            while not await _wait_for_event(gone, _HEARTBEAT):
                await driver.execute("SELECT 1", timeout=_HEARTBEAT)
        raise ConnectionError("the connection that marks this node as present was lost")

    async def close(self) -> None:
        """Finish running operations, then close every connection."""
        if self._under_way:
            await self._is_idle.wait()
        await self._engine.dispose()
