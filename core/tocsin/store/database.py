"""The database behind two verbs: `read` and `write` run a plain function over a `Connection`."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from tocsin.store.notifications import ALL_TOPICS, Listener

P = ParamSpec("P")
T = TypeVar("T")
Operation = Callable[Concatenate[Connection, P], T]


class Database(ABC):
    """An open database. A data-access function is written once and runs on every kind."""

    @abstractmethod
    async def read(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `operation(connection, ...)` returns.

        Its statements are not one snapshot: each sees what was committed when it began.
        """

    async def lookup(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `read` returns, for an operation that finds a few rows by their keys.

        Where a way to another thread would cost more than that, it runs on the caller's own.
        """
        return await self.read(operation, *args, **kwargs)

    @abstractmethod
    async def write(self, operation: Operation[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `operation(connection, ...)` returns, once that is durable.

        Everything it wrote is one transaction; nothing of it remains if it raises.
        """

    async def attend(self, _node: int, heard: Listener) -> None:
        """Be known to other nodes as present, and hear what they announce, until cancelled.

        `heard` is called with each topic, and with EVERYTHING as soon as it is so. Raises when it
        cannot go on, for the caller to begin anew. By itself, there are no others.
        """
        heard(ALL_TOPICS)
        await asyncio.get_running_loop().create_future()

    @abstractmethod
    async def close(self) -> None:
        """Finish what is under way and let go of every connection."""
