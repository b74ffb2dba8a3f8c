"""SQLite: one thread writes, committing in groups; a few threads read."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection as DriverConnection
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from tocsin.store.codec import dumps, loads
from tocsin.store.database import Database, Operation, P

T = TypeVar("T")
READERS = 4
GROUP = 64  # transactions that share one commit, and so one flush to the disk


def _prepare(connection: DriverConnection, _record: object) -> None:
    for pragma in (
        "busy_timeout = 10000",
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def make_engine(path: Path) -> Engine:
    """Return an engine whose connections leave BEGIN and COMMIT to whoever uses them."""
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        json_serializer=dumps,
        json_deserializer=loads,
    )
    event.listen(engine, "connect", _prepare)
    return engine


@dataclass(slots=True)
class _Job:
    operation: Callable[[Connection], Any]
    future: asyncio.Future[Any]
    result: Any = None
    error: BaseException | None = None


class _Writer(threading.Thread):
    """Runs each job in a savepoint of a shared transaction, and answers after the commit."""

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(name="tocsin-sqlite-writer", daemon=True)
        self._engine = engine
        self._loop = loop
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()

    def submit(self, operation: Callable[[Connection], T]) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(_Job(operation, future))
        return future

    def stop(self) -> None:
        self._jobs.put(None)

    def run(self) -> None:
        with self._engine.connect() as connection:
            while (job := self._jobs.get()) is not None:
                group, ending = self._gather(job)
                self._commit(connection, group)
                self._loop.call_soon_threadsafe(_answer, group)
                if ending:
                    return

    def _gather(self, first: _Job) -> tuple[list[_Job], bool]:
        group = [first]
        while len(group) < GROUP:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                break
            if job is None:
                return group, True
            group.append(job)
        return group, False

    def _commit(self, connection: Connection, group: Sequence[_Job]) -> None:
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            for job in group:
                self._run_in_savepoint(connection, job)
            connection.exec_driver_sql("COMMIT")
        except BaseException as error:  # noqa: BLE001 - handed to everyone who waits for the commit
            for job in group:
                job.error = job.error or error
            # after a full disk, for one, SQLite has rolled back by itself
            with suppress(SQLAlchemyError):
                connection.exec_driver_sql("ROLLBACK")

    def _run_in_savepoint(self, connection: Connection, job: _Job) -> None:
        connection.exec_driver_sql("SAVEPOINT job")
        try:
            job.result = job.operation(connection)
        except BaseException as error:  # noqa: BLE001 - handed to the caller who waits for it
            job.error = error
            connection.exec_driver_sql("ROLLBACK TO job")
        connection.exec_driver_sql("RELEASE job")


def _answer(group: Sequence[_Job]) -> None:
    for job in group:
        if job.future.cancelled():
            continue
        if job.error is None:
            job.future.set_result(job.result)
        else:
            job.future.set_exception(job.error)


class SqliteDatabase(Database):
    """A SQLite file in WAL mode. To be made inside a running event loop."""

    def __init__(self, path: Path) -> None:
        self._engine = make_engine(path)
        self._local = threading.local()
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="tocsin-sqlite-reader")
        self._open: list[Connection] = []
        self._writer = _Writer(self._engine, asyncio.get_running_loop())
        self._writer.start()

    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `operation` returns, run by one of the reading threads."""
        return await asyncio.get_running_loop().run_in_executor(
            self._readers, self._read, lambda connection: operation(connection, *args, **kwargs)
        )

    def _read(self, operation: Callable[[Connection], T]) -> T:
        if not hasattr(self._local, "connection"):
            self._local.connection = self._engine.connect()
            self._open.append(self._local.connection)
        return operation(self._local.connection)

    async def write(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `operation` returns, once the group that it was part of is committed."""
        return await self._writer.submit(lambda connection: operation(connection, *args, **kwargs))

    async def close(self) -> None:
        """Let the writer finish its queue, then close every connection."""
        self._writer.stop()
        await asyncio.to_thread(self._writer.join)
        await asyncio.to_thread(self._readers.shutdown)
        for connection in self._open:
            connection.close()
        self._engine.dispose()
