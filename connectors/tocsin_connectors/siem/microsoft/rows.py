"""From a row of a table of logs to the event that it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any

from tocsin import Entity, EntityKind, Relation, SiemEvent, parse_json
from tocsin_connectors.siem.microsoft.kql import AT, FROM, RECORD
from tocsin_connectors.siem.microsoft.naming import entity_of
from tocsin_connectors.siem.microsoft.tables import Column, Table
from tocsin_connectors.siem.records import number, text, union, utc
from tocsin_connectors.siem.relating import related

Row = Mapping[str, Any]
Mentioned = Callable[[Any], Iterable[Entity]]
"""Returns the entities that a column names in JSON of the product's own."""


def event_of(row: Row, tables: Mapping[str, Table], asked: Entity, read: Mentioned) -> SiemEvent:
    """Return the event that a row is.

    Raises ValueError for a row that cannot be understood, or that does not name what was asked for.
    """
    table, record = tables.get(str(row.get(FROM))), _object(row.get(RECORD))
    if table is None:
        raise ValueError(f"{FROM} is of no table that was asked: {row.get(FROM)!r:.60}")
    at = utc(str(row.get(AT)))
    entities = union([_named(record, table, asked), _mentioned(record, table, read, asked)])
    if asked not in entities:
        raise ValueError("it does not name what was asked for")
    return SiemEvent(
        external_id=text(record, "_ItemId") or _digest(table, at, record),
        occurred_at=at,
        summary=" ".join(_summary(record, table).split()),
        entities=entities,
        relations=union([_relations(record, table, asked, at)]),
        fields={"table": table.name, **dict(_shown(record, table.shown))},
    )


def _object(value: Any) -> dict[str, Any]:
    """Return the object that a dynamic value is, which may be written as a text."""
    if isinstance(value, str):
        value = parse_json(value.encode())
    match value:
        case dict():
            return value
    raise ValueError(f"{RECORD} is no object: {value!r:.60}")


def _named(record: dict[str, Any], table: Table, asked: Entity) -> Iterator[Entity]:
    for kind, columns in table.columns.items():
        for column in columns:
            yield from _in_column(record, kind, column, asked)


def _mentioned(
    record: dict[str, Any], table: Table, read: Mentioned, asked: Entity
) -> Iterator[Entity]:
    columns = union(table.mentions.values())
    for column in columns:
        yield from (_as_asked(it, asked) for it in read(record.get(str(column))))


def _in_column(
    record: dict[str, Any], kind: EntityKind, column: Column, asked: Entity
) -> Iterator[Entity]:
    value = _value(record, column)
    if not value:
        return
    if kind is asked.kind and value.casefold() == asked.value.casefold():
        yield asked  # whatever form it has, it is what the row was found by
    else:
        yield from (_as_asked(it, asked) for it in entity_of(kind, value))


def _value(record: dict[str, Any], column: Column) -> str | None:
    if isinstance(column, str):
        return text(record, column)
    domain, name = (text(record, it) for it in column)
    return f"{domain}\\{name}" if domain and name else name


def _as_asked(found: Entity, asked: Entity) -> Entity:
    """Return the entity as it was asked for, where it differs in nothing but its case."""
    same = (found.kind, found.value.casefold()) == (asked.kind, asked.value.casefold())
    return asked if same else found


def _relations(
    record: dict[str, Any], table: Table, asked: Entity, at: datetime
) -> Iterator[Relation]:
    for tie in table.ties:
        if tie.only is None or text(record, tie.only[0]) == tie.only[1]:
            ends = (_all_in(record, table, it, asked) for it in (tie.source, tie.target))
            yield from related(next(ends), tie.type, next(ends), at)


def _all_in(
    record: dict[str, Any], table: Table, column: Column, asked: Entity
) -> tuple[Entity, ...]:
    kinds = [kind for kind, columns in table.columns.items() if column in columns]
    return union(_in_column(record, kind, column, asked) for kind in kinds)


def _summary(record: dict[str, Any], table: Table) -> str:
    """Say what a row tells: `logon: LogonSuccess, RemoteInteractive, alice`."""
    said = [str(value) for _, value in _shown(record, table.shown)]
    return f"{table.what}: {', '.join(said)}" if said else table.what


def _shown(record: dict[str, Any], columns: Iterable[str]) -> Iterator[tuple[str, str | int]]:
    for column in columns:
        value = text(record, column)
        found = value if value is not None else number(record, column)
        if found is not None:
            yield column, found


def _digest(table: Table, at: datetime, record: dict[str, Any]) -> str:
    """Return what names a row that has no id of its own: rows do not change."""
    content = json.dumps([table.name, at.isoformat(), record], sort_keys=True)
    return sha256(content.encode()).hexdigest()[:24]
