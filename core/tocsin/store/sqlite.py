"""SQLite: one thread writes, committing in groups; a few threads read."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection as DriverConnection
from sqlite3 import Error as DriverError
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from tocsin.store.database import Database, Operation, P
from tocsin.store.driver_queries import DriverQuery, Values
from tocsin.store.faults import DatabaseReplaced
from tocsin.store.redactor import ERASURE_KEY
from tocsin.store.statements import FLOORS
from tocsin.store.text import dump_json, load_json
from tocsin.tracing import carry_context

T = TypeVar("T")
READERS = 4
LOOKUP_CACHE = 16 * 1024  # KiB of pages for lookups, which find single rows anywhere in the file
GROUP = 64  # transactions that share one commit, and so one flush to the disk
GROUP_BEHIND = 8  # the same for those that yield to others, which wait for no more
MAX_YIELDS = 4  # commits of others that those wait for at most


def _prepare(connection: DriverConnection, _record: object) -> None:
    for pragma in (
        "busy_timeout = 10000",
        "auto_vacuum = INCREMENTAL",  # only before the first table
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def make_engine(path: Path) -> Engine:
    """Create an engine whose connections leave BEGIN and COMMIT to the caller."""
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        hide_parameters=True,  # they may be secrets, and errors are logged
        json_serializer=dump_json,
        json_deserializer=load_json,
    )
    event.listen(engine, "connect", _prepare)
    return engine


class _RolledBack(Exception):  # noqa: N818 - a state, not a mistake
    """SQLite has rolled back the whole transaction, as it does when the disk is full."""


@dataclass(slots=True)
class _Job:
    operation: Callable[[Connection], Any]
    future: asyncio.Future[Any]
    is_behind: bool = False
    result: Any = None
    error: BaseException | None = None

    def run(self, connection: Connection) -> None:
        """Run in a savepoint; raises _RolledBack where the whole transaction was rolled back.

        By the driver, since SQLAlchemy takes ten times as long for statements that do so little.
        """
        driver = _find_driver(connection)
        driver.execute("SAVEPOINT job")
        try:
            self.result = self.operation(connection)
        except BaseException as error:  # noqa: BLE001 - handed to the caller who waits for it
            self.error = error
        if not driver.in_transaction:
            raise _RolledBack("a database error rolled back the whole transaction")
        if self.error is not None:
            driver.execute("ROLLBACK TO job")
        driver.execute("RELEASE job")

    def answer(self) -> None:
        """Pass the result to the caller."""
        if self.future.cancelled():
            return
        if self.error is None:
            self.future.set_result(self.result)
        elif isinstance(self.error, StopIteration):  # which a future cannot hold
            self.future.set_exception(RuntimeError(repr(self.error)))
        else:
            self.future.set_exception(self.error)


class _Writer(threading.Thread):
    """Runs each job in a savepoint of a shared transaction, and returns results after commit."""

    def __init__(
        self, engine: Engine, check: Callable[[], None], loop: asyncio.AbstractEventLoop
    ) -> None:
        """Write by the engine; `check` raises where nobody would find what is committed."""
        super().__init__(name="tocsin-sqlite-writer", daemon=True)
        self._engine = engine
        self._check = check
        self._loop = loop
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._behind: deque[_Job] = deque()
        self._yields = 0
        self._connection: Connection | None = None
        self._stopping = False

    def submit(
        self, operation: Callable[[Connection], T], *, is_behind: bool = False
    ) -> asyncio.Future[T]:
        """Submit an operation; the future holds its result once it is durable.

        One that `is_behind` yields to all others, and shares no commit with them.
        """
        if self._stopping:
            raise RuntimeError("the database is closed")
        future: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(_Job(operation, future, is_behind))
        return future

    def stop(self) -> None:
        """Stop after the jobs that were already submitted."""
        self._stopping = True
        self._jobs.put(None)

    def run(self) -> None:
        """Run jobs until stopped."""
        while group := self._gather():
            self._run_group(group)
            self._loop.call_soon_threadsafe(_answer_group, group)
        if self._connection is not None:
            self._connection.close()

    def _gather(self) -> list[_Job]:
        """Return the next jobs that share a commit, none after the last one."""
        behind = self._behind
        if len(behind) and self._yields >= MAX_YIELDS:
            return self._gather_behind()
        group: list[_Job] = []
        while len(group) < GROUP and not (self._jobs.empty() and (group or behind)):
            job = self._jobs.get()
            if job is None:
                self._jobs.put(None)  # to be found again
                break
            (behind if job.is_behind else group).append(job)
        if behind:
            self._yields += 1
        return group or self._gather_behind()

    def _gather_behind(self) -> list[_Job]:
        self._yields = 0
        return [self._behind.popleft() for _ in range(min(len(self._behind), GROUP_BEHIND))]

    def _run_group(self, group: Sequence[_Job]) -> None:
        """Commit the jobs together or, where one breaks the transaction, each separately."""
        if not self._commit(group) and len(group) > 1:
            for job in group:
                job.error = job.result = None
                self._commit([job])

    def _commit(self, group: Sequence[_Job]) -> bool:
        """Return whether each job has its own result; False where one rolled back all."""
        try:
            connection = self._connection = self._connection or self._engine.connect()
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            for job in group:
                job.run(connection)
            self._check()
            connection.exec_driver_sql("COMMIT")
        except BaseException as error:  # noqa: BLE001 - handed to everyone who waits for the commit
            for job in group:
                job.error = job.error or error
            self._roll_back()
            return not isinstance(error, _RolledBack)
        return True

    def _roll_back(self) -> None:
        connection = self._connection
        if connection is not None and _in_transaction(connection):
            with suppress(SQLAlchemyError):
                connection.exec_driver_sql("ROLLBACK")


def _identify(path: Path) -> tuple[int, int] | None:
    """Return the device and number of a file, None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _find_driver(connection: Connection) -> DriverConnection:
    driver = connection.connection.dbapi_connection
    assert isinstance(driver, DriverConnection)  # noqa: S101 - as the engine has connected
    return driver


def _in_transaction(connection: Connection) -> bool:
    driver = connection.connection.dbapi_connection
    return driver is not None and bool(driver.in_transaction)


def _answer_group(group: Sequence[_Job]) -> None:
    for job in group:
        job.answer()


class SqliteDatabase(Database):
    """A SQLite file in WAL mode; create it in a running event loop."""

    def __init__(self, path: Path) -> None:
        with suppress(OSError):  # the first use reports the error
            # private to its owner; SQLite creates the files beside it with the same mode
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        self.floors, self.keys = {}, {}
        self._engine = make_engine(path).execution_options(
            **{FLOORS: self.floors, ERASURE_KEY: self.keys}
        )
        self._wal = path.with_name(path.name + "-wal")
        self._opened = {path: _identify(path)}
        self._local = threading.local()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="tocsin-sqlite-reader")
        self._open: list[Connection] = []
        self._lookups: DriverConnection | None = None
        self._writer = _Writer(self._engine, self.check_identity, asyncio.get_running_loop())
        self._writer.start()

    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the operation in a reader thread, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(
            self._readers, self._read, lambda connection: operation(connection, *args, **kwargs)
        )

    def _read(self, operation: Callable[[Connection], T]) -> T:
        if not hasattr(self._local, "connection"):
            self._local.connection = self._engine.connect()
            self._open.append(self._local.connection)
        return operation(self._local.connection)

    async def snapshot(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the operation in one read transaction, in which SQLite shows one state."""

        def operate() -> T:
            with self._engine.connect() as connection:
                connection.exec_driver_sql("BEGIN")
                try:
                    return operation(connection, *args, **kwargs)
                finally:
                    connection.exec_driver_sql("ROLLBACK")

        return await asyncio.to_thread(operate)

    def _find_lookup_driver(self) -> DriverConnection:
        """Return the driver's connection for lookups in this thread, which caches more pages."""
        if self._lookups is None:
            self._lookups = self._read(_find_driver)
            self._lookups.execute(f"PRAGMA cache_size = -{LOOKUP_CACHE}")
        return self._lookups

    async def lookup(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the operation in this thread, since readers never wait in WAL mode.

        Switching threads takes longer than finding a row by its key.
        """
        return self._read(lambda connection: operation(connection, *args, **kwargs))

    async def fetch_row(self, query: DriverQuery, values: Values) -> Sequence[Any] | None:
        """Run the query in this thread, and return its row, None if there is none or it fails."""
        try:
            driver = self._find_lookup_driver()
            cursor = driver.execute(*query.bind(self._engine.dialect, values))
            row: Sequence[Any] | None = cursor.fetchone()
            cursor.close()  # which ends the read, even where there are more rows
        except (SQLAlchemyError, DriverError):
            return None
        return row

    async def write(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the operation in the writer thread, and return its result once committed."""
        return await self._writer.submit(
            carry_context(lambda connection: operation(connection, *args, **kwargs))
        )

    async def write_behind(
        self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run the operation in the writer thread, after all that others have submitted."""
        return await self._writer.submit(
            carry_context(lambda connection: operation(connection, *args, **kwargs)),
            is_behind=True,
        )

    def check_identity(self) -> None:
        """Raise DatabaseReplaced if the file or its log was removed or replaced.

        SQLite keeps both open, and would go on storing where nobody finds it.
        """
        if (log := _identify(self._wal)) is not None:
            self._opened.setdefault(self._wal, log)
        for path, opened in self._opened.items():
            if _identify(path) != opened:
                raise DatabaseReplaced(
                    f"the database file {path.resolve()} was removed or replaced while in use"
                )

    async def close(self) -> None:
        """Finish the queue of the writer, then close every connection."""
        self._writer.stop()
        await asyncio.to_thread(self._writer.join)
        await asyncio.to_thread(self._readers.shutdown)
        for connection in self._open:
            connection.close()
        self._engine.dispose()
