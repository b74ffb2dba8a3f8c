"""PostgreSQL, through SQLAlchemy's asyncio engine over asyncpg."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, TypeVar

from sqlalchemy import URL, Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool
from sqlalchemy.util import greenlet_spawn

from tocsin.errors import OperatorError, TocsinError
from tocsin.loops import beat, wait_for_event
from tocsin.store.database import Database, Operation, P
from tocsin.store.driver_queries import DriverQuery, Values
from tocsin.store.driver_sessions import DriverSessions
from tocsin.store.faults import describe_connection_failure, describe_fault
from tocsin.store.notifications import ALL_TOPICS, ANNOUNCED, CHANNEL, Listener
from tocsin.store.partitions import keep_partitions
from tocsin.store.postgres_engine import make_engine
from tocsin.store.redactor import ERASURE_KEY
from tocsin.store.row_batches import RowBatches
from tocsin.store.server_address import DATABASE_URL, READ_URL, SESSION_URL, read_address
from tocsin.store.session_limits import (
    SESSION_LIMITS,
    SHARES_SESSIONS,
    allow_long_transaction,
    list_missing_defaults,
)
from tocsin.store.statements import ALLOTTED, FLOORS, allot_numbers

T = TypeVar("T")
POOL = 10
_POOL_SECONDS = 15  # until a connection of the pool is free
_RETRIED_STATES = (
    "40001",
    "40P01",
)  # serialization_failure, deadlock_detected (appendix A of its manual)
_MAX_TRIES = 3
_NOTIFICATION_SECONDS = 5
_POOLER_STATES = ("26000", "42P05")  # a prepared statement that is not there, or is already
_NO_SESSIONS = (
    "%s: found a connection pooler that shares sessions between its clients; connect to PostgreSQL "
    "itself, or to a pooler in session mode (PgBouncer: pool_mode = session)"
)
_NO_SESSION_URL = f"{_NO_SESSIONS % DATABASE_URL}, or also set {SESSION_URL} to such a connection"
_TWO_DATABASES = (
    f"{SESSION_URL}: points to a different database than {DATABASE_URL}, because a notification "
    "that was sent over one connection did not arrive over the other"
)
_HEARTBEAT = 10  # seconds until a lost connection is noticed
_ANNOUNCEMENT_INTERVAL = 0.02  # seconds; topics that are announced meanwhile share a notification
_NOTIFY = f"SELECT pg_notify('{CHANNEL}', topic) FROM unnest($1::text[]) AS topic"  # noqa: S608
_READ_ONLY = {"default_transaction_read_only": "on"}  # even if it is promoted
# A node that misses three heartbeats is frozen: its presence ends, and others take over its work
_PRESENCE_LIMITS = {"idle_session_timeout": "30000"}


def _is_of_pooler(error: BaseException) -> bool:
    """Return whether the error shows that statements of one connection went to several sessions."""
    state = getattr(getattr(error, "orig", error), "sqlstate", None)
    return state in _POOLER_STATES or "pooling mode" in str(error)


async def _repeat(write: Callable[[], Awaitable[T]]) -> T:
    """Return the result of a transaction, repeated after a serialization failure or a deadlock."""
    for _ in range(_MAX_TRIES - 1):
        try:
            return await write()
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) not in _RETRIED_STATES:
                raise
    return await write()


class PostgresDatabase(Database):
    """A PostgreSQL database, shared by any number of nodes."""

    is_shared = True

    def __init__(self, url: URL, sessions: URL | None = None, *, is_replica: bool = False) -> None:
        """Open a database.

        With a URL for `sessions`, `url` may lead through a pooler in transaction mode: what needs a
        session of its own uses the other. A replica is only read.
        """
        self.floors, self.keys = {}, {}
        self._shares_sessions = shared = sessions is not None
        address = read_address(url, READ_URL if is_replica else DATABASE_URL)
        limits = {**SESSION_LIMITS, **(_READ_ONLY if is_replica else {})}
        pool = {"pool_size": POOL, "max_overflow": 0, "pool_timeout": _POOL_SECONDS}
        self._engine = make_engine(
            address, limits, shares_sessions=shared, **pool
        ).execution_options(
            **{FLOORS: self.floors, ERASURE_KEY: self.keys, SHARES_SESSIONS: shared}
        )
        presence = {**SESSION_LIMITS, **_PRESENCE_LIMITS}
        own = address if sessions is None else read_address(sessions, SESSION_URL)
        self._attending = make_engine(own, presence, poolclass=NullPool)
        self._driver = DriverSessions(
            make_engine(address, SESSION_LIMITS, shares_sessions=shared, poolclass=NullPool),
            prepares=not shared and address.cached_statements != 0,
        )
        self._batches = RowBatches(self._driver)
        self._dialect = self._engine.dialect
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
        return await self._run(self._reading.sync_engine.connect, operation, *args, **kwargs)

    async def fetch_row(self, query: DriverQuery, values: Values) -> Sequence[Any] | None:
        """Run the query as a statement that the driver has prepared, and return its row."""
        text, values = query.bind(self._dialect, values)
        reader = self._batches if query.is_lookup else self._driver
        return await reader.fetch_row(text, values)

    async def snapshot(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the operation in one transaction that reads one snapshot."""

        def operate(connection: Connection) -> T:
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            allow_long_transaction(connection)
            keep_partitions(connection)
            return operation(connection, *args, **kwargs)

        return await self._run(self._engine.sync_engine.begin, operate)

    async def write(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the operation, and return its result once committed.

        The transaction is repeated after a serialization failure or a deadlock.
        """
        return await _repeat(lambda: self._write(operation, *args, **kwargs))

    async def write_behind(
        self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run the operation as `write` does, but use at most half of the connections."""
        async with self._behind:
            return await self.write(operation, *args, **kwargs)

    async def execute_behind(
        self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run the operation as `write_behind` does, without statements to begin and to commit."""
        async with self._behind:
            return await _repeat(lambda: self._read(operation, *args, **kwargs))

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

        result = await self._run(self._engine.sync_engine.begin, operate)
        self._raise_floors(allotted)
        if announced:
            await self._announce(announced)
        return result

    def _raise_floors(self, allotted: Mapping[str, int]) -> None:
        for name in allotted.keys() & self.floors.keys():
            self.floors[name] = max(self.floors[name], allotted[name])

    async def reserve_numbers(self, name: str, count: int) -> range:
        """Return `count` numbers of a sequence, in a transaction of this statement alone."""
        numbers = await self._read(allot_numbers, name, count)
        self._raise_floors({name: numbers.stop - 1})
        return numbers

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
        connect: Callable[[], AbstractContextManager[Connection]],
        operation: Operation[P, T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run the operation; raises DatabaseFailure if the driver cannot connect or gets no answer.

        Whatever else the operation raises is its own. Connection, transaction and operation share
        one greenlet: SQLAlchemy's asynchronous connection takes five, which cost more than the
        driver.
        """
        is_connected = False

        def operate() -> T:
            nonlocal is_connected
            with connect() as connection:
                is_connected = True
                return operation(connection, *args, **kwargs)

        with self._busy():
            try:
                return await greenlet_spawn(operate)
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
        """Raise OperatorError if a pooler lets other clients use the session of a connection.

        A notification reaches a listener only by a session of its own. Locks and limits need one
        too. Behind a pooler that may share sessions, the server has to set the limits.
        """
        try:
            await self._require_notifications()
            missing = await self.read(list_missing_defaults) if self._shares_sessions else []
        except OperatorError:
            raise
        except Exception as error:
            if not _is_of_pooler(error):
                raise describe_fault(error) from error
            raise OperatorError(self._describe_pooler()) from error
        if missing:
            raise OperatorError(
                f"{DATABASE_URL}: session limits are missing, and Tocsin cannot set them through "
                f"a pooler that shares sessions; run these statements in the database, and then "
                f"reconnect the pooler:\n" + "\n".join(missing)
            )

    async def _require_notifications(self) -> None:
        """Raise OperatorError if a notification over one connection does not reach another."""
        topic = f"{CHANNEL}_{secrets.token_hex(8)}"
        async with self._attending.connect() as first, self._attending.connect() as second:
            listening = (await first.get_raw_connection()).driver_connection
            other = (await second.get_raw_connection()).driver_connection
            assert listening is not None and other is not None  # noqa: PT018, S101 - connected
            heard = asyncio.Event()
            await listening.add_listener(topic, lambda *_: heard.set())
            await other.execute(f"NOTIFY {topic}")
            if not await wait_for_event(heard, _NOTIFICATION_SECONDS):
                raise OperatorError(self._describe_pooler())
            if self._shares_sessions:
                heard.clear()
                await self.read(lambda connection: connection.exec_driver_sql(f"NOTIFY {topic}"))
                if not await wait_for_event(heard, _NOTIFICATION_SECONDS):
                    raise OperatorError(_TWO_DATABASES)

    def _describe_pooler(self) -> str:
        return _NO_SESSIONS % SESSION_URL if self._shares_sessions else _NO_SESSION_URL

    async def close(self) -> None:
        """Finish running operations, then close every connection."""
        if self._under_way:
            await self._is_idle.wait()
        await self._driver.close()
        await self._engine.dispose()
