"""Rows of PostgreSQL for callers that ask at the same time, by one statement."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from tocsin.store.driver_queries import Values
from tocsin.store.driver_sessions import DriverSessions

_MOST_ROWS = 64
"""The most rows that one statement reads."""
_PARAMETER = re.compile(r"\$(\d+)::([A-Z]+)")
_Caller = asyncio.Future[Sequence[Any] | None]
_Callers = list[_Caller]


class RowBatches:
    """Reads rows by their keys, with one statement of a query at a time.

    Callers that ask while a statement runs wait for the next one, which reads all their rows.
    Every statement begins after its callers have asked, as if each had run its own. If it fails,
    none of them gets a row.
    """

    def __init__(self, sessions: DriverSessions) -> None:
        self._sessions = sessions
        self._waiting: dict[str, dict[Values, _Callers]] = {}
        """The callers of the queries that are being read."""
        self._readers: set[asyncio.Task[None]] = set()

    async def fetch_row(self, text: str, values: Values) -> Sequence[Any] | None:
        """Return the row, None if there is none or the database fails."""
        waiting = self._waiting.get(text)
        if waiting is None:
            return await self._begin(text, values)
        caller: _Caller = asyncio.get_running_loop().create_future()
        waiting.setdefault(values, []).append(caller)
        return await caller

    async def _begin(self, text: str, values: Values) -> Sequence[Any] | None:
        """Return the row of the first caller; a task reads the rows of those who ask meanwhile."""
        waiting = self._waiting[text] = {}
        try:
            return await self._sessions.fetch_row(text, values)
        finally:
            if waiting:
                reader = asyncio.create_task(self._read(text, waiting))
                self._readers.add(reader)
                reader.add_done_callback(self._readers.discard)
            else:
                del self._waiting[text]

    async def _read(self, text: str, waiting: dict[Values, _Callers]) -> None:
        """Read the rows of one query until nobody waits for any."""
        try:
            while waiting:
                batch = {values: waiting.pop(values) for values in [*islice(waiting, _MOST_ROWS)]}
                rows = await self._fetch(text, [*batch])
                for callers, row in zip(batch.values(), rows, strict=True):
                    _answer(callers, row)
        finally:
            del self._waiting[text]
            for callers in waiting.values():
                _answer(callers, None)

    async def _fetch(self, text: str, keys: Sequence[Values]) -> Sequence[Sequence[Any] | None]:
        """Return the row of each key."""
        if len(keys) == 1:
            return [await self._sessions.fetch_row(text, keys[0])]
        found: list[Sequence[Any] | None] = [None] * len(keys)
        arrays = tuple(zip(*keys, strict=True))
        for row in await self._sessions.fetch_rows(_read_several(text), arrays):
            found[row[-1] - 1] = row[:-1]
        return found


def _answer(callers: _Callers, row: Sequence[Any] | None) -> None:
    for caller in callers:
        if not caller.done():  # it is cancelled
            caller.set_result(row)


@lru_cache
def _read_several(text: str) -> str:
    """Return the statement for arrays of the parameters, with the position in them at the end.

    The subqueries keep the planner from counting the elements: it would plan again for each count.
    """
    types = sorted({int(number): type_ for number, type_ in _PARAMETER.findall(text)}.items())
    arrays = ", ".join(f"(SELECT ${number}::{type_}[])" for number, type_ in types)
    names = ", ".join(f"p{number}" for number, _ in types)
    query = _PARAMETER.sub(r"wanted.p\1", text)
    return (
        f"SELECT found.*, wanted.position FROM unnest({arrays}) "  # noqa: S608 - the project's own
        f"WITH ORDINALITY AS wanted({names}, position) CROSS JOIN LATERAL ({query}) AS found"
    )
