"""Asking tables of logs for what names an entity."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus

from tocsin import Entity, EntityKind, Refused, SiemEvent, TryLater, Window
from tocsin_connectors.siem.microsoft.kql import build_search_query
from tocsin_connectors.siem.microsoft.rows import EntityReader, LogRow, build_event
from tocsin_connectors.siem.microsoft.tables import LogTable

_WORD = re.compile(r"\w+")
_UNRESOLVED_NAME = re.compile(r"[Ff]ailed to resolve[^'\"]*['\"\\]+(\w+)")


@dataclass(frozen=True, slots=True)
class LogRows:
    """What a query was answered."""

    rows: Sequence[LogRow]
    lacking: str | None = None
    """Why that is not all."""


QueryRunner = Callable[[str, Window], Awaitable[LogRows]]
"""Runs a query over a window; raises what `Api.request` raises."""


def list_entity_kinds(tables: Iterable[LogTable]) -> frozenset[EntityKind]:
    """Return what some tables can be asked for."""
    return frozenset(kind for it in tables for kind in (*it.columns, *it.mentions))


def _read_nothing(_: object) -> Iterable[Entity]:
    return ()


class LogTableSearcher:
    """Finds events in some tables."""

    def __init__(
        self,
        tables: Iterable[LogTable],
        time: str,
        run: QueryRunner,
        read: EntityReader = _read_nothing,
    ) -> None:
        """Keep what is needed; `time` is the column that all of the tables have their time in."""
        self._tables = {table.name: table for table in tables}
        self._time = time
        self._run = run
        self._read = read
        self._left_out: set[str] = set()
        """Tables that are there, but cannot be asked."""

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield what names an entity, the latest first.

        Raises `TryLater` at the end where that is not all that there is.
        """
        answer = await self._ask(entity, window, limit) if entity.value else LogRows(())
        for row in answer.rows[:limit]:
            event = self._event(row, entity)
            if event is not None and event.occurred_at in window:
                yield event
        lacking = [answer.lacking, *(f"{it} cannot be asked" for it in sorted(self._left_out))]
        if reasons := [it for it in lacking if it]:
            raise TryLater(f"the logs were searched in part only: {'; '.join(reasons)}")

    def _event(self, row: LogRow, asked: Entity) -> SiemEvent | None:
        """Return the event that a row is; None where it cannot be understood."""
        with suppress(ValueError):
            return build_event(row, self._tables, asked, self._read)
        return None

    async def _ask(self, entity: Entity, window: Window, limit: int) -> LogRows:
        """Return what the tables answer that can be asked."""
        while query := build_search_query(self._tables.values(), self._time, entity, window, limit):
            asked = frozenset(self._tables)
            try:
                return await self._run(query, window)
            except Refused as refused:
                if not self._learn_from(refused, asked):
                    raise
        return LogRows(())

    def _learn_from(self, refused: Refused, asked: frozenset[str]) -> bool:
        """Return whether there is one table less to ask than were asked, since the answer names it.

        Not every service passes over what it does not have, and one table may be on a plan that
        takes no such queries: neither is to hide what the others have.
        """
        if refused.status != HTTPStatus.BAD_REQUEST:
            return False
        words = refused.response.decode(errors="replace")
        unknown = asked & set(_UNRESOLVED_NAME.findall(words))
        named = asked & set(_WORD.findall(words))
        if not unknown and len(named) == 1:
            self._left_out |= named
        for name in (gone := unknown or self._left_out & named):
            self._tables.pop(name, None)  # another question may have met it meanwhile
        return bool(gone)
