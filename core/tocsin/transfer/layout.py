"""Layout of tables in a form that both databases share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Self

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    cast,
)

from tocsin.store.tables import Timestamp, metadata

DERIVED = frozenset(
    {
        "documents",
        "entities",
        "entity_names",
        "incident_counts",
        "incident_documents",
    }
)
"""Tables that are made from others, in part differently on each kind of database.

`entity_providers` could be made too, but decides who may be asked about an entity at any time.
"""
TRANSIENT = frozenset({"nodes", "rate_usage", "write_marks"})
"""Tables of what runs now."""


class ColumnKind(StrEnum):
    """Kind of the values of a column."""

    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"
    TEXT = "text"
    BYTES = "bytes"
    JSON = "json"


_TYPES: dict[ColumnKind, Any] = {
    ColumnKind.INTEGER: BigInteger,
    ColumnKind.REAL: Float,
    ColumnKind.BOOLEAN: Boolean,
    ColumnKind.TEXT: Text,
    ColumnKind.BYTES: LargeBinary,
    ColumnKind.JSON: Text,  # as it is stored, since its numbers would change their form
}


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """One column."""

    name: str
    kind: ColumnKind
    is_key: bool = False
    """Whether it is part of the primary key."""


@dataclass(frozen=True)
class TableLayout:
    """One table with its columns."""

    name: str
    columns: tuple[ColumnLayout, ...]

    @classmethod
    def of(cls, table: Table) -> Self:
        """Return the layout of a table."""
        columns = (ColumnLayout(c.name, _find_kind(c), c.primary_key) for c in table.columns)
        return cls(table.name, tuple(columns))

    @classmethod
    def of_json(cls, name: str, columns: Sequence[Sequence[Any]]) -> Self:
        """Return the layout from its stored form; raises ValueError for an unknown kind."""
        parsed = (
            ColumnLayout(str(column), ColumnKind(kind), bool(key)) for column, kind, key in columns
        )
        return cls(name, tuple(parsed))

    def to_json(self) -> list[list[Any]]:
        """Return the stored form of the columns."""
        return [[column.name, column.kind.value, column.is_key] for column in self.columns]

    @cached_property
    def table(self) -> Table:
        """The table with values as they are stored: times are numbers, and JSON is text."""
        made = (
            Column(column.name, _TYPES[column.kind](), primary_key=column.is_key)
            for column in self.columns
        )
        return Table(self.name, MetaData(), *made)

    @cached_property
    def values(self) -> list[ColumnElement[Any]]:
        """The columns in the form in which rows are read."""
        return [
            cast(self.table.c[column.name], Text).label(column.name)
            if column.kind is ColumnKind.JSON
            else self.table.c[column.name]
            for column in self.columns
        ]

    def find_places(self, kind: ColumnKind) -> list[int]:
        """Return the places of the columns of a kind."""
        return [place for place, column in enumerate(self.columns) if column.kind is kind]

    @cached_property
    def key_places(self) -> list[int]:
        """The places of the columns of the primary key."""
        return [place for place, column in enumerate(self.columns) if column.is_key]


def _find_kind(column: Column[Any]) -> ColumnKind:
    kinds: list[tuple[type | tuple[type, ...], ColumnKind]] = [
        (Boolean, ColumnKind.BOOLEAN),
        ((Integer, Timestamp), ColumnKind.INTEGER),
        (Float, ColumnKind.REAL),
        (JSON, ColumnKind.JSON),
        (LargeBinary, ColumnKind.BYTES),
        (String, ColumnKind.TEXT),
    ]
    for types, kind in kinds:
        if isinstance(column.type, types):
            return kind
    raise TypeError(f"{column.table.name}.{column.name}: no form for {column.type!r}")


def list_layouts() -> list[TableLayout]:
    """Return the tables that are transferred, each after those that it refers to."""
    left_out = DERIVED | TRANSIENT
    return [TableLayout.of(table) for table in metadata.sorted_tables if table.name not in left_out]
