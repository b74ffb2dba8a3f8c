"""Index scans on PostgreSQL where its planner would read much more of a table."""

from __future__ import annotations

from contextlib import suppress
from functools import wraps
from typing import Any, Self, TypeVar

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Select,
    Text,
    bindparam,
    false,
    func,
    select,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.operators import OperatorType

from tocsin.store.database import Operation, P
from tocsin.store.statements import bind_list

T = TypeVar("T")


def _settings(**values: str) -> Select[Any]:
    return select(*(func.set_config(name, value, false()) for name, value in values.items()))


_INDEXES_ALONE = _settings(
    enable_bitmapscan="off", enable_seqscan="off", plan_cache_mode="force_custom_plan"
)
_AS_USUAL = _settings(enable_bitmapscan="on", enable_seqscan="on", plan_cache_mode="auto")


def force_index_scans(operation: Operation[P, T]) -> Operation[P, T]:
    """Decorate an operation so that PostgreSQL reads the newest rows in index order.

    By default, PostgreSQL assumes that every entity is in few incidents, and sorts all of them to
    find the newest, even for a hub that is in very many. It assumes that every list is long, and
    scans a table for it. From the sixth execution on, it uses a generic plan that ignores the
    limit, and takes about ten times as long.
    """

    @wraps(operation)
    def run(connection: Connection, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if connection.dialect.name == "sqlite":
            return operation(connection, *args, **kwargs)
        connection.execute(_INDEXES_ALONE)
        try:
            return operation(connection, *args, **kwargs)
        finally:
            with suppress(SQLAlchemyError):  # a failed transaction, or a closed connection
                connection.execute(_AS_USUAL)

    return run


class _Keys(FunctionElement[Any]):
    """The primary keys of rows, by the first two columns of a unique index."""

    inherit_cache = True


class _IsAmong(FunctionElement[bool]):
    type = Boolean()
    inherit_cache = True

    def self_group(self, against: OperatorType | None = None) -> Self:  # noqa: ARG002
        """Return this condition as it is: SQLite uses no index for SQLAlchemy's `... = 1`."""
        return self


@compiles(_Keys, "sqlite")
def _select_on_sqlite(element: _Keys, compiler: Any, **options: Any) -> str:
    key, first, second, value, values = (compiler.process(e, **options) for e in element.clauses)
    wanted = f"{first} = {value} AND {second} IN (SELECT value FROM json_each({values}))"  # noqa: S608 - compiled by SQLAlchemy
    return f"(SELECT {key} FROM {_find_table(key)} WHERE {wanted})"  # noqa: S608 - the same


@compiles(_Keys, "postgresql")
def _select_on_postgresql(element: _Keys, compiler: Any, **options: Any) -> str:
    key, first, second, value, values = (compiler.process(e, **options) for e in element.clauses)
    nearest = (
        f"SELECT {key} AS key, {second} AS value FROM {_find_table(key)} "  # noqa: S608 - the same
        f"WHERE {first} = {value} AND {second} >= wanted.value ORDER BY {second} LIMIT 1"
    )
    return (
        f"(SELECT found.key FROM unnest({values}) AS wanted(value) "  # noqa: S608 - the same
        f"JOIN LATERAL ({nearest}) AS found ON found.value = wanted.value)"
    )


def _find_table(column: str) -> str:
    return column.rpartition(".")[0]


@compiles(_IsAmong, "sqlite")
def _compare_on_sqlite(element: _IsAmong, compiler: Any, **options: Any) -> str:
    key, keys = (compiler.process(each, **options) for each in element.clauses)
    return f"{key} IN {keys}"


@compiles(_IsAmong, "postgresql")
def _compare_on_postgresql(element: _IsAmong, compiler: Any, **options: Any) -> str:
    key, keys = (compiler.process(each, **options) for each in element.clauses)
    return f"{key} = ANY (ARRAY{keys})"


def list_keys(key: Column[Any], first: Column[Any], second: Column[Any], values: str) -> Any:
    """Return the query of primary keys, as a part of statements.

    `first` has the parameter of its name, and `second` one of the list `values`; a unique index
    begins with the two. PostgreSQL finds each row as the first one that is not below a value: only
    this index has that order. For a condition without it, PostgreSQL would read all rows with the
    same `first`, by another index, while it has no statistics about the table.
    """
    return _Keys(key, first, second, bindparam(first.name, type_=Text), bind_list(values))


def is_among(key: Column[Any], keys: Any) -> ColumnElement[bool]:
    """Return whether the primary key of a row is among those of `list_keys`.

    Run the statement where sequential scans are off, for the same reason.
    """
    return _IsAmong(key, keys)
