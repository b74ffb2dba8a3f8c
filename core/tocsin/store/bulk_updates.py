"""Updates of many rows, each with a row that records it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Table,
    Update,
    bindparam,
    column,
    func,
    insert,
    select,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.types import TypeEngine

from tocsin.store.insert_sets import Row, choose_array_type
from tocsin.store.statements import BulkStatement


class BulkUpdate:
    """An update of one row for each tuple of parameters, and an insert for each that found its row.

    `build` gets the parameters of a tuple by name; the first one is the key, and the update uses
    those in `types`. Several tuples may have the same key if at most one of them finds the row. The
    insert takes its columns from members of the tuple, as `inserted` names them. PostgreSQL runs
    one statement over arrays, and needs no transaction around it. SQLite runs the two for each
    tuple: to read an array from JSON takes longer.

    The statement for PostgreSQL has the range of the keys in the column `key`. Without it, all
    partitions would be looked at, and perhaps read as a whole.
    """

    def __init__(
        self,
        build: Callable[[Mapping[str, ColumnElement[Any]]], Update],
        types: Mapping[str, TypeEngine[Any]],
        key: ColumnElement[Any],
        into: Table,
        inserted: Mapping[str, str],
    ) -> None:
        others = {
            name: choose_array_type(into.c[to].type)
            for to, name in inserted.items()
            if name not in types
        }
        self._names = (*types, *others)
        binds = {name: bindparam(name, type_=type_) for name, type_ in types.items()}
        self._update = BulkStatement(build(binds), list(types))
        self._insert = BulkStatement(insert(into), list(inserted))
        self._pick_updated = itemgetter(*map(self._names.index, types))
        self._pick_inserted = itemgetter(*map(self._names.index, inserted.values()))
        is_near = key.between(bindparam("least"), bindparam("most"))
        self._set = _build_update_and_insert(
            lambda new: build(new).where(is_near), {**types, **others}, into, inserted
        )

    def run(self, connection: Connection, rows: Sequence[Row]) -> set[int]:
        """Run the statement, and return the positions of the tuples that found their rows."""
        if not rows:
            return set()
        if connection.dialect.name == "sqlite":
            found = self._update.run_each(connection, map(self._pick_updated, rows))
            logged = map(self._pick_inserted, (rows[position] for position in sorted(found)))
            self._insert.run(connection, logged)
            return found
        arrays = dict(zip(self._names, map(list, zip(*rows, strict=True)), strict=True))
        keys = [row[0] for row in rows]
        near = {"least": min(keys), "most": max(keys)}
        return {number - 1 for number in connection.scalars(self._set, {**arrays, **near})}


def _build_update_and_insert(
    build: Callable[[Mapping[str, ColumnElement[Any]]], Update],
    types: Mapping[str, TypeEngine[Any]],
    into: Table,
    inserted: Mapping[str, str],
) -> Select[Any]:
    arrays = [bindparam(name, type_=postgresql.ARRAY(type_)) for name, type_ in types.items()]
    columns = [column(name, type_) for name, type_ in types.items()]
    tuples = func.unnest(*arrays).table_valued(*columns, with_ordinality="position", name="tuples")
    new = select(*tuples.render_derived().c).cte("new")
    found = build(dict(new.c)).returning(new.c.position).cte("found")
    values = select(*(new.c[name] for name in inserted.values())).join(
        found, found.c.position == new.c.position
    )
    logged = insert(into).from_select(list(inserted), values, include_defaults=False).cte("logged")
    return select(found.c.position).add_cte(logged)
