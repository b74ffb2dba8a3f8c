"""Sessions of PostgreSQL whose statements the driver runs itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from tocsin.store.driver_queries import Values

DRIVER_CONNECTIONS = 6
"""Connections for single rows, which are opened when they are needed."""
_RECONNECT_SECONDS = 5
_MOST_SECONDS = 10
"""Time for a statement: callers of the same query wait for it, and then read in another way."""


class DriverSessions:
    """Connections whose statements the driver runs itself, each prepared once.

    A connection that fails is closed. After a failure to connect, none is tried for a moment.
    """

    def __init__(self, engine: AsyncEngine, *, prepares: bool = True) -> None:
        """Use an engine without a pool; with `prepares` off, no statement outlives its call."""
        self._engine = engine
        self._prepares = prepares
        self._permits = asyncio.Semaphore(DRIVER_CONNECTIONS)
        self._free: list[DriverSession] = []
        self._retry_at = 0.0
        self._is_closed = False

    async def fetch_row(self, text: str, values: Values) -> Sequence[Any] | None:
        """Return the row, None if there is none or the database fails or takes too long."""
        rows = await self.fetch_rows(text, values)
        return rows[0] if rows else None

    async def fetch_rows(self, text: str, values: Values) -> Sequence[Sequence[Any]]:
        """Return the rows, none if the database fails or takes too long."""
        async with self._permits:
            session = self._free.pop() if self._free else await self._connect()
            if session is None:
                return ()
            try:
                rows = await session.fetch_rows(text, values)
            except BaseException as error:
                await session.close()
                if not isinstance(error, Exception):  # the caller is gone
                    raise
                return ()
            if self._is_closed:
                await session.close()
            else:
                self._free.append(session)
            return rows

    async def _connect(self) -> DriverSession | None:
        if self._is_closed or time.monotonic() < self._retry_at:
            return None
        try:
            return DriverSession(await self._engine.connect(), prepares=self._prepares)
        except Exception:  # noqa: BLE001 - the read that follows tells why
            self._retry_at = time.monotonic() + _RECONNECT_SECONDS
            return None

    async def close(self) -> None:
        """Close the connections; what is under way closes its own."""
        self._is_closed = True
        while self._free:
            await self._free.pop().close()


class DriverSession:
    """One connection of the driver, with its prepared statements."""

    def __init__(self, connection: AsyncConnection, *, prepares: bool) -> None:
        self._connection = connection
        self._prepares = prepares
        self._prepared: dict[str, Any] = {}

    async def fetch_rows(self, text: str, values: Values) -> Sequence[Sequence[Any]]:
        """Return the rows of a statement."""
        rows: Sequence[Sequence[Any]]
        if (prepared := self._prepared.get(text)) is None:
            driver: Any = (await self._connection.get_raw_connection()).driver_connection
            if not self._prepares:
                rows = await driver.fetch(text, *values, timeout=_MOST_SECONDS)
                return rows
            prepared = self._prepared[text] = await driver.prepare(text, timeout=_MOST_SECONDS)
        rows = await prepared.fetch(*values, timeout=_MOST_SECONDS)
        return rows

    async def close(self) -> None:
        """Close the connection, whatever its state."""
        with suppress(Exception):
            await self._connection.invalidate()
        with suppress(Exception):
            await self._connection.close()
