"""Inserts of many rows in one statement of PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    ColumnElement,
    Dialect,
    Insert,
    Integer,
    LargeBinary,
    Text,
    TypeDecorator,
    bindparam,
    column,
    func,
    select,
)
from sqlalchemy import cast as sql_cast
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeEngine

Row = tuple[Any, ...]


class InsertSet:
    """An insert of rows that come as arrays, one for each column."""

    def __init__(
        self,
        statement: Insert,
        names: Sequence[str],
        dialect: Dialect,
        *,
        prefix: str = "",
        added: Mapping[str, ColumnElement[Any]] | None = None,
    ) -> None:
        """Insert the columns `names`; the parameters have these names, with the prefix.

        The values of `added` are added to those of their columns; to a document, its members.
        """
        types = [statement.table.c[name].type.dialect_impl(dialect) for name in names]
        items = [choose_array_type(type_) for type_ in types]
        columns = [column(name, item) for name, item in zip(names, items, strict=True)]
        arrays = [
            bindparam(prefix + each.name, type_=postgresql.ARRAY(each.type)) for each in columns
        ]
        rows = func.unnest(*arrays).table_valued(*columns, name="new").render_derived()
        values: list[ColumnElement[Any]] = [
            sql_cast(value, type_) if isinstance(type_, JSON | postgresql.TSVECTOR) else value
            for value, type_ in zip(rows.c, types, strict=True)
        ]
        for name, more in (added or {}).items():
            at = names.index(name)
            is_document = isinstance(types[at], JSON)
            values[at] = values[at].concat(more) if is_document else values[at] + more
        self.statement = statement.from_select(list(names), select(*values), include_defaults=False)
        self._names = [prefix + name for name in names]
        self._processors = [type_.bind_processor(dialect) for type_ in types]

    def arrange(self, rows: Sequence[Row]) -> dict[str, list[Any]]:
        """Return the parameters for the rows, in the order of the columns."""
        columns = zip(*rows, strict=True) if rows else ((),) * len(self._names)
        return {
            name: list(values) if processor is None else [*map(processor, values)]
            for name, processor, values in zip(self._names, self._processors, columns, strict=True)
        }


def choose_array_type(type_: TypeEngine[Any]) -> TypeEngine[Any]:
    """Return the type in which the driver sends an array of a column's values.

    Strings have no length in it, since a cast would cut them. An insert refuses those that are too
    long.
    """
    stored = type_.impl_instance if isinstance(type_, TypeDecorator) else type_
    return stored if isinstance(stored, Integer | Boolean | LargeBinary) else Text()
