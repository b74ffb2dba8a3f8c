"""Inserts whose rows take consecutive numbers that become visible in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import BigInteger, Connection, Select, Update, bindparam, select, update

from tocsin.store.insert_sets import InsertSet, Row
from tocsin.store.statements import BulkStatement, allot_numbers, confirm_allotted
from tocsin.store.tables import sequences

_COUNT = "allotted_count"


class NumberedWrites:
    """Inserts into several tables, whose rows take numbers from a sequence in one column.

    The sequence stays locked from the first number to the commit. Therefore PostgreSQL runs one
    statement for all: nobody waits while this process is asked for the next one. SQLite, which has
    one writer, runs one for each table.
    """

    def __init__(
        self,
        sequence: str,
        column: str,
        writes: Mapping[str, BulkStatement],
        change: Update | None = None,
    ) -> None:
        """Name each insert. Rows that others refer to come first; upserts count as inserts.

        `change` is an update of a row for which others wait. It runs in the same statement, and its
        parameters have no names of columns.
        """
        self._sequence = sequence
        self._column = column
        self._writes = writes
        self._change = change
        self._unchanged = {} if change is None else dict.fromkeys(change.compile().params)
        """Parameters of an update that finds no row, since no key is null."""
        self._prepared: tuple[Select[Any], Mapping[str, InsertSet]] | None = None

    def run(
        self,
        connection: Connection,
        count: int,
        rows: Mapping[str, Sequence[Row]],
        changed: Mapping[str, Any] | None = None,
    ) -> None:
        """Insert the rows of each name, and allot `count` numbers to them.

        The column holds the place of a number among them, from 1, until it is stored. `changed` has
        the parameters of the update; without them, it does not run.
        """
        if connection.dialect.name != "postgresql":
            if self._change is not None and changed is not None:
                connection.execute(self._change, changed)
            before = allot_numbers(connection, self._sequence, count).start - 1
            for name, write in self._writes.items():
                write.run(connection, write.add(rows[name], self._column, before))
            return
        if self._prepared is None:
            self._prepared = self._prepare(connection)
        statement, sets = self._prepared
        parameters: dict[str, Any] = {_COUNT: count, **(changed or self._unchanged)}
        for name, each in sets.items():
            parameters |= each.arrange(rows[name])
        last = connection.execute(statement, parameters).scalar_one()
        confirm_allotted(connection, self._sequence, last, count)

    def _prepare(self, connection: Connection) -> tuple[Select[Any], Mapping[str, InsertSet]]:
        """Return the statement for all tables, which returns the last number, and its parts."""
        count = bindparam(_COUNT, type_=BigInteger)
        allotted = (
            update(sequences)
            .where(sequences.c.name == self._sequence)
            .values(value=sequences.c.value + count)
            .returning(sequences.c.value)
            .cte("allotted")
        )
        before = select(allotted.c.value - count).scalar_subquery()
        sets = {
            name: write.build_set(
                connection,
                prefix=f"{name}_",
                added={self._column: before} if self._column in write.names else {},
            )
            for name, write in self._writes.items()
        }
        parts = [each.statement.cte(f"written_{name}") for name, each in sets.items()]
        if self._change is not None:
            parts.append(self._change.cte("changed"))
        return select(allotted.c.value).add_cte(*parts), sets
