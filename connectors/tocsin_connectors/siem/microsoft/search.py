"""Event search in tables of logs: queries, their rows, and the events in the rows."""

from __future__ import annotations

import json
import re
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from http import HTTPStatus
from typing import Any

from tocsin import Entity, EntityKind, Refused, Relation, SiemEvent, TryLater, Window, parse_json
from tocsin_connectors.siem.microsoft.kql import AT, FROM, RECORD, build_search_query
from tocsin_connectors.siem.microsoft.mapping import parse_entity, parse_user
from tocsin_connectors.siem.microsoft.tables import LogColumn, LogTable
from tocsin_connectors.siem.records import children, number, parse_utc, relate, text, union

LogRow = Mapping[str, Any]
EntityReader = Callable[[Any], Iterable[Entity]]
"""Returns the entities in a JSON column of the product."""


def build_event(
    row: LogRow, tables: Mapping[str, LogTable], asked: Entity, read: EntityReader
) -> SiemEvent:
    """Return the event of a row.

    Raises ValueError if the row is invalid or does not name the queried entity.
    """
    table, record = tables.get(str(row.get(FROM))), _parse_object(row.get(RECORD))
    if table is None:
        raise ValueError(f"{FROM} is not a table of the query: {row.get(FROM)!r:.60}")
    at = parse_utc(str(row.get(AT)))
    entities = union(
        [_find_named(record, table, asked), _find_mentioned(record, table, read, asked)]
    )
    if asked not in entities:
        raise ValueError("the row does not contain the queried entity")
    return SiemEvent(
        external_id=text(record, "_ItemId") or _build_digest(table, at, record),
        occurred_at=at,
        summary=" ".join(_summarize(record, table).split()),
        entities=entities,
        relations=union([_find_relations(record, table, asked, at)]),
        fields={"table": table.name, **dict(_select_fields(record, table.shown))},
    )


def _parse_object(value: Any) -> dict[str, Any]:
    """Return the object in a dynamic value, which may be a string."""
    if isinstance(value, str):
        value = parse_json(value.encode())
    match value:
        case dict():
            return value
    raise ValueError(f"{RECORD} is not an object: {value!r:.60}")


def _find_named(record: dict[str, Any], table: LogTable, asked: Entity) -> Iterator[Entity]:
    for kind, columns in table.columns.items():
        for column in columns:
            yield from _find_in_column(record, kind, column, asked)


def _find_mentioned(
    record: dict[str, Any], table: LogTable, read: EntityReader, asked: Entity
) -> Iterator[Entity]:
    columns = union(table.mentions.values())
    for column in columns:
        value = record.get(str(column))
        for entity in (*read(value), *_read_details(value)):
            yield _use_queried_spelling(entity, asked)


def _read_details(value: Any) -> Iterator[Entity]:
    """Yield the users and addresses in `LoggedOnUsers` and `RecipientDetails`."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = parse_json(value.encode())
    for item in children({"": value}, ""):
        yield from parse_user(text(item, "UserName"), text(item, "DomainName"))
        if address := text(item, "RecipientSmtpAddress"):
            yield from parse_entity(EntityKind.EMAIL, address)


def _find_in_column(
    record: dict[str, Any], kind: EntityKind, column: LogColumn, asked: Entity
) -> Iterator[Entity]:
    value = _get_value(record, column)
    if not value:
        return
    if kind is asked.kind and value.casefold() == asked.value.casefold():
        yield asked  # the query matched this value, whatever its form
    else:
        yield from (_use_queried_spelling(entity, asked) for entity in parse_entity(kind, value))


def _get_value(record: dict[str, Any], column: LogColumn) -> str | None:
    if isinstance(column, str):
        return text(record, column)
    domain, name = (text(record, name) for name in column)
    return f"{domain}\\{name}" if domain and name else name


def _use_queried_spelling(found: Entity, asked: Entity) -> Entity:
    """Return the queried entity if a found one differs only in case."""
    same = (found.kind, found.value.casefold()) == (asked.kind, asked.value.casefold())
    return asked if same else found


def _find_relations(
    record: dict[str, Any], table: LogTable, asked: Entity, at: datetime
) -> Iterator[Relation]:
    for tie in table.ties:
        if tie.only is None or text(record, tie.only[0]) == tie.only[1]:
            ends = (
                _find_all_in_column(record, table, column, asked)
                for column in (tie.source, tie.target)
            )
            yield from relate(next(ends), tie.type, next(ends), at)


def _find_all_in_column(
    record: dict[str, Any], table: LogTable, column: LogColumn, asked: Entity
) -> tuple[Entity, ...]:
    kinds = [kind for kind, columns in table.columns.items() if column in columns]
    return union(_find_in_column(record, kind, column, asked) for kind in kinds)


def _summarize(record: dict[str, Any], table: LogTable) -> str:
    """Summarize a row: `logon: LogonSuccess, RemoteInteractive, alice`."""
    values = [str(value) for _, value in _select_fields(record, table.shown)]
    return f"{table.what}: {', '.join(values)}" if values else table.what


def _select_fields(
    record: dict[str, Any], columns: Iterable[str]
) -> Iterator[tuple[str, str | int]]:
    for column in columns:
        value = text(record, column)
        found = value if value is not None else number(record, column)
        if found is not None:
            yield column, found


def _build_digest(table: LogTable, at: datetime, record: dict[str, Any]) -> str:
    """Return the ID of a row that has none of its own. Rows never change."""
    content = json.dumps([table.name, at.isoformat(), record], sort_keys=True)
    return sha256(content.encode()).hexdigest()[:24]


_WORD = re.compile(r"\w+")
_UNRESOLVED_NAME = re.compile(r"[Ff]ailed to resolve[^'\"]*['\"\\]+(\w+)")


@dataclass(frozen=True, slots=True)
class LogRows:
    """Rows of a query."""

    rows: Sequence[LogRow]
    lacking: str | None = None
    """Reason why rows are missing."""


QueryRunner = Callable[[str, Window], Awaitable[LogRows]]
"""Runs a query over a window. Raises what `Api.request` raises."""


def list_entity_kinds(tables: Iterable[LogTable]) -> frozenset[EntityKind]:
    """Return the kinds of entity that tables can be searched for."""
    return frozenset(kind for table in tables for kind in (*table.columns, *table.mentions))


def _read_nothing(_: object) -> Iterable[Entity]:
    return ()


class LogTableSearcher:
    """Search for events in tables of logs."""

    def __init__(
        self,
        tables: Iterable[LogTable],
        time: str,
        run: QueryRunner,
        read: EntityReader = _read_nothing,
    ) -> None:
        """Store the dependencies. `time` is the time column of all tables."""
        self._tables = {table.name: table for table in tables}
        self._time = time
        self._run = run
        self._read = read
        self._left_out: set[str] = set()
        """Tables that exist but cannot be searched."""

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield events that name an entity, latest first.

        Raises `TryLater` at the end if the result is incomplete.
        """
        answer = await self._ask(entity, window, limit) if entity.value else LogRows(())
        for row in answer.rows[:limit]:
            event = self._event(row, entity)
            if event is not None and event.occurred_at in window:
                yield event
        lacking = [
            answer.lacking,
            *(f"{table} cannot be searched" for table in sorted(self._left_out)),
        ]
        if reasons := [reason for reason in lacking if reason]:
            raise TryLater(f"the log search is incomplete: {'; '.join(reasons)}")

    def _event(self, row: LogRow, asked: Entity) -> SiemEvent | None:
        """Return the event of a row, or None if the row is invalid."""
        with suppress(ValueError):
            return build_event(row, self._tables, asked, self._read)
        return None

    async def _ask(self, entity: Entity, window: Window, limit: int) -> LogRows:
        """Return the rows of all tables that can be searched."""
        while query := build_search_query(self._tables.values(), self._time, entity, window, limit):
            asked = frozenset(self._tables)
            try:
                return await self._run(query, window)
            except Refused as refused:
                if not self._learn_from(refused, asked):
                    raise
        return LogRows(())

    def _learn_from(self, refused: Refused, asked: frozenset[str]) -> bool:
        """Exclude the table that a refusal names, and return whether there is one.

        Not every service skips unknown tables, and a table may be on a plan that does not allow
        such queries. Neither should hide the other tables.
        """
        if refused.status != HTTPStatus.BAD_REQUEST:
            return False
        message = refused.response.decode(errors="replace")
        unknown = asked & set(_UNRESOLVED_NAME.findall(message))
        named = asked & set(_WORD.findall(message))
        if not unknown and len(named) == 1:
            self._left_out |= named
        for name in (gone := unknown or self._left_out & named):
            self._tables.pop(name, None)  # a concurrent search may have removed it
        return bool(gone)
