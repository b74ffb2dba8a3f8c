"""PostgreSQL, through SQLAlchemy's asyncio engine over asyncpg."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from typing import Any, TypeVar

from sqlalchemy import URL, Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from tocsin.errors import OperatorError, TocsinError
from tocsin.loops import beat, wait_for_event
from tocsin.store.database import Database, Operation, P
from tocsin.store.driver_queries import DriverQuery, Values
from tocsin.store.faults import describe_connection_failure, describe_fault
from tocsin.store.notifications import ALL_TOPICS, ANNOUNCED, CHANNEL, Listener
from tocsin.store.redactor import ERASURE_KEY
from tocsin.store.session_limits import (
    SCHEMA_CHANGE_SECONDS,
    SESSION_LIMITS,
    allow_long_transaction,
    limit_sessions,
)
from tocsin.store.statements import ALLOTTED, FLOORS
from tocsin.store.text import dump_json, load_json

T = TypeVar("T")
POOL = 10
DRIVER_CONNECTIONS = 6
"""Connections for `fetch_row`, which are opened when they are needed."""
_CONNECT_SECONDS = 10
_RECONNECT_SECONDS = 5
_POOL_SECONDS = 15  # until a connection of the pool is free
_RETRIED_STATES = (
    "40001",
    "40P01",
)  # serialization_failure, deadlock_detected (appendix A of its manual)
_MAX_TRIES = 3
_NOTIFICATION_SECONDS = 5
_POOLER_STATES = ("26000", "42P05")  # a prepared statement that is not there, or is already
_NO_SESSIONS = (
    "TOCSIN_DATABASE_URL: found a connection pooler that shares sessions between its clients; "
    "connect to PostgreSQL itself, or to a pooler in session mode (PgBouncer: pool_mode = session)"
)
_HEARTBEAT = 10  # seconds until a lost connection is noticed
_ANNOUNCEMENT_INTERVAL = 0.02  # seconds; topics that are announced meanwhile share a notification
_NOTIFY = f"SELECT pg_notify('{CHANNEL}', topic) FROM unnest($1::text[]) AS topic"  # noqa: S608
# A node that misses three heartbeats is frozen: its presence ends, and others take over its work
_PRESENCE_LIMITS = {"idle_session_timeout": "30000"}
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


def _make_engine(url: URL, limits: Mapping[str, str], **pool: Any) -> AsyncEngine:
    address = _driver_url(url)
    waits: dict[str, float] = {"command_timeout": SCHEMA_CHANGE_SECONDS}
    if "timeout" not in address.query:
        waits["timeout"] = _CONNECT_SECONDS
    try:
        engine = create_async_engine(
            address,
            **pool,
            connect_args=waits,
            hide_parameters=True,  # they may be secrets, and errors are logged
            json_serializer=dump_json,
            json_deserializer=load_json,
        )
    except ModuleNotFoundError as error:
        raise OperatorError(
            "PostgreSQL requires a driver: install the extra with `pip install 'tocsin[postgres]'`"
        ) from error
    limit_sessions(engine, limits)
    return engine


def _is_of_pooler(error: BaseException) -> bool:
    """Return whether the error shows that statements of one connection went to several sessions."""
    state = getattr(getattr(error, "orig", error), "sqlstate", None)
    return state in _POOLER_STATES or "pooling mode" in str(error)


class _DriverSessions:
    """Connections whose statements the driver runs itself, each prepared once.

    A connection that fails is closed. After a failure to connect, none is tried for a moment.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._permits = asyncio.Semaphore(DRIVER_CONNECTIONS)
        self._free: list[_DriverSession] = []
        self._retry_at = 0.0
        self._is_closed = False

    async def fetch_row(self, text: str, values: Values) -> Sequence[Any] | None:
        """Return the row, None if there is none or the database fails."""
        async with self._permits:
            session = self._free.pop() if self._free else await self._connect()
            if session is None:
                return None
            try:
                row = await session.fetch_row(text, values)
            except BaseException as error:
                await session.close()
                if not isinstance(error, Exception):  # the caller is gone
                    raise
                return None
            if self._is_closed:
                await session.close()
            else:
                self._free.append(session)
            return row

    async def _connect(self) -> _DriverSession | None:
        if self._is_closed or time.monotonic() < self._retry_at:
            return None
        try:
            return _DriverSession(await self._engine.connect())
        except Exception:  # noqa: BLE001 - the read that follows tells why
            self._retry_at = time.monotonic() + _RECONNECT_SECONDS
            return None

    async def close(self) -> None:
        """Close the connections; what is under way closes its own."""
        self._is_closed = True
        while self._free:
            await self._free.pop().close()


class _DriverSession:
    """One connection of the driver, with its prepared statements."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._prepared: dict[str, Any] = {}

    async def fetch_row(self, text: str, values: Values) -> Sequence[Any] | None:
        """Return the first row of a statement, None if there is none."""
        if text not in self._prepared:
            driver: Any = (await self._connection.get_raw_connection()).driver_connection
            self._prepared[text] = await driver.prepare(text)
        row: Sequence[Any] | None = await self._prepared[text].fetchrow(*values)
        return row

    async def close(self) -> None:
        """Close the connection, whatever its state."""
        with suppress(Exception):
            await self._connection.invalidate()
        with suppress(Exception):
            await self._connection.close()


class PostgresDatabase(Database):
    """A PostgreSQL database, shared by any number of nodes."""

    is_shared = True

    def __init__(self, url: URL) -> None:
        self.floors, self.keys = {}, {}
        self._engine = _make_engine(
            url, SESSION_LIMITS, pool_size=POOL, max_overflow=0, pool_timeout=_POOL_SECONDS
        ).execution_options(**{FLOORS: self.floors, ERASURE_KEY: self.keys})
        presence = {**SESSION_LIMITS, **_PRESENCE_LIMITS}
        self._attending = _make_engine(url, presence, poolclass=NullPool)
        self._driver = _DriverSessions(_make_engine(url, SESSION_LIMITS, poolclass=NullPool))
        self._reading = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self._behind = asyncio.Semaphore(POOL // 2)  # the others always find a connection
        self._announced: set[str] = set()
        self._has_announced: asyncio.Event | None = None
        """Wakes the connection that sends announcements; None if there is none."""
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
        return await self._run(self._reading.connect(), operation, *args, **kwargs)

    async def fetch_row(self, query: DriverQuery, values: Values) -> Sequence[Any] | None:
        """Run the query as a statement that the driver has prepared, and return its row."""
        return await self._driver.fetch_row(*query.bind(self._engine.dialect, values))

    async def snapshot(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the operation in one transaction that reads one snapshot."""

        def operate(connection: Connection) -> T:
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            allow_long_transaction(connection)
            return operation(connection, *args, **kwargs)

        return await self._run(self._engine.begin(), operate)

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

    async def write_behind(
        self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run the operation as `write` does, over half of the connections at most."""
        async with self._behind:
            return await self.write(operation, *args, **kwargs)

    async def _write(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the operation in one transaction.

        Numbers that it allots are known to be issued once it is committed. A server that fails over
        and loses its last commits is noticed by that before it issues them again.
        """
        allotted: dict[str, int] = {}
        announced: set[str] = set()

        def operate(connection: Connection) -> T:
            connection.info.update({ALLOTTED: allotted, ANNOUNCED: announced})
            return operation(connection, *args, **kwargs)

        result = await self._run(self._engine.begin(), operate)
        for name in allotted.keys() & self.floors.keys():
            self.floors[name] = max(self.floors[name], allotted[name])
        if announced:
            await self._announce(announced)
        return result

    async def _announce(self, topics: Collection[str]) -> None:
        """Announce the topics of a committed transaction.

        A node does so over the connection that listens, others at once. What is lost is only late:
        loops look for work by themselves, too.
        """
        self._announced.update(topics)
        if self._has_announced is not None:
            self._has_announced.set()
            return
        with suppress(Exception):
            await self._read(self._notify)

    def _notify(self, connection: Connection) -> None:
        connection.exec_driver_sql(_NOTIFY, (self._take_announced(),))

    def _take_announced(self) -> list[str]:
        topics = sorted(self._announced)
        self._announced.clear()
        return topics

    async def _run(
        self,
        connecting: AbstractAsyncContextManager[AsyncConnection],
        operation: Operation[P, T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run the operation; raises DatabaseFailure where the driver gets no connection or answer.

        Whatever else the operation raises is its own.
        """
        is_connected = False
        with self._busy():
            try:
                async with connecting as connection:
                    is_connected = True
                    return await connection.run_sync(operation, *args, **kwargs)
            except (SQLAlchemyError, TocsinError):
                raise
            except Exception as error:
                if is_connected and not isinstance(error, TimeoutError):
                    raise
                raise describe_connection_failure(error) from error

    async def attend(self, node: int, heard: Listener) -> None:
        """Hold the advisory lock of this node, and listen, until cancelled.

        The lock ends with its session. Raises ConnectionError when the session ends.
        """
        async with self._attending.connect() as connection:
            driver = (await connection.get_raw_connection()).driver_connection
            assert driver is not None  # noqa: S101 - a connected asyncpg connection
            woken = asyncio.Event()
            driver.add_termination_listener(lambda _: woken.set())
            await driver.add_listener(CHANNEL, lambda *notice: heard(notice[-1]))
            await driver.execute("SELECT pg_advisory_lock($1)", node)
            heard(ALL_TOPICS)
            self._has_announced = woken
            try:
                await self._send_announcements(driver, woken)
            finally:
                self._has_announced = None
        raise ConnectionError("the connection that marks this node as alive was lost")

    async def _send_announcements(self, driver: Any, woken: asyncio.Event) -> None:
        """Send what is announced, each topic once in an interval, until the session ends."""
        while True:
            is_woken = self._announced or await wait_for_event(woken, _HEARTBEAT)
            woken.clear()
            if driver.is_closed():
                return
            beat()
            if topics := self._take_announced():
                await driver.execute(_NOTIFY, topics, timeout=_HEARTBEAT)
                await asyncio.sleep(_ANNOUNCEMENT_INTERVAL)
            elif not is_woken:
                await driver.execute("SELECT 1", timeout=_HEARTBEAT)

    async def require_sessions(self) -> None:
        """Raise OperatorError where a pooler gives the session of a connection to others.

        A notification reaches a listener only by a session of its own. Locks and limits need one
        too.
        """
        topic = f"{CHANNEL}_{secrets.token_hex(8)}"
        try:
            async with self._attending.connect() as first, self._attending.connect() as second:
                listening = (await first.get_raw_connection()).driver_connection
                other = (await second.get_raw_connection()).driver_connection
                assert listening is not None and other is not None  # noqa: PT018, S101 - connected
                heard = asyncio.Event()
                await listening.add_listener(topic, lambda *_: heard.set())
                await other.execute(f"NOTIFY {topic}")
                if await wait_for_event(heard, _NOTIFICATION_SECONDS):
                    return
        except Exception as error:
            if not _is_of_pooler(error):
                raise describe_fault(error) from error
        raise OperatorError(_NO_SESSIONS)

    async def close(self) -> None:
        """Finish running operations, then close every connection."""
        if self._under_way:
            await self._is_idle.wait()
        await self._driver.close()
        await self._engine.dispose()
