"""Database interface: `read` and `write` run a plain function with a `Connection`."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from tocsin.loops import beat
from tocsin.store.driver_queries import DriverQuery, Values
from tocsin.store.notifications import ALL_TOPICS, Listener
from tocsin.store.statements import allot_numbers

P = ParamSpec("P")
T = TypeVar("T")
_BEAT_SECONDS = 10
Operation = Callable[Concatenate[Connection, P], T]


class Database(ABC):
    """An open database; data-access functions run on every kind of database."""

    is_shared: ClassVar[bool] = False
    """Whether several nodes may use it at once."""
    floors: dict[str, int]
    """The highest numbers that are known to be issued, by sequence; none is issued again."""
    keys: dict[str, bytes]
    """Keys that operations need, by the name of the execution option that holds them."""

    @abstractmethod
    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `operation(connection, ...)`, and return its result.

        There is no common snapshot: each statement sees what was committed when it started.
        """

    async def lookup(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation that finds a few rows by their keys, and return its result.

        It runs in the caller's thread where switching threads would cost more.
        """
        return await self.read(operation, *args, **kwargs)

    async def fetch_row(self, _query: DriverQuery, _values: Values) -> Sequence[Any] | None:
        """Return the row of a query that finds a few rows by their keys, as the driver returns it.

        It takes one round trip at most. None if there is no row, if the database fails, or if this
        kind of database has no such way: the caller then reads as usual, which raises what is
        wrong.
        """
        return None

    @abstractmethod
    async def snapshot(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation that reads for long and sees one moment of the database throughout.

        It blocks nobody else who uses the database, and no other snapshot runs beside it.
        """

    @abstractmethod
    async def write(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `operation(connection, ...)` in a transaction, and return its result once durable.

        The transaction is rolled back if the operation raises.
        """

    async def write_behind(
        self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Do as `write`, but yield to other writers, so that new data is stored first."""
        return await self.write(operation, *args, **kwargs)

    async def execute_behind(
        self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Do as `write_behind`, for an operation that is one statement if the database is shared.

        Such a statement is a transaction by itself.
        """
        return await self.write_behind(operation, *args, **kwargs)

    async def reserve_numbers(self, name: str, count: int) -> range:
        """Return `count` numbers of a sequence, which stay reserved whatever becomes of them.

        Nobody waits for more than the statement. Raises DatabaseReplaced as `allot_numbers` does.
        """
        return await self.write(allot_numbers, name, count)

    async def attend(self, _node: int, heard: Listener) -> None:
        """Announce this node as present, and listen to other nodes, until cancelled.

        `heard` is called with each announced topic, and once with ALL_TOPICS after the start.
        Raises when the connection is lost, for the caller to start again. This default is for a
        database with a single node.
        """
        heard(ALL_TOPICS)
        while True:
            beat()
            await asyncio.sleep(_BEAT_SECONDS)

    def check_identity(self) -> None:
        """Raise DatabaseReplaced if the open files are no longer the ones at their path.

        Nothing where the database is a server's.
        """
        return

    async def require_sessions(self) -> None:
        """Raise OperatorError if a pooler lets other clients use the session of a connection.

        Nothing where there is no server.
        """
        return

    @abstractmethod
    async def close(self) -> None:
        """Finish running operations and close every connection."""
