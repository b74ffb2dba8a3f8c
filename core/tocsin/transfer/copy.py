"""Copy of a database to another one, in batches, so that it can be resumed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    MetaData,
    String,
    Table,
    Text,
    func,
    insert,
    select,
    text,
    tuple_,
    update,
)

from tocsin import audit
from tocsin.errors import OperatorError
from tocsin.store import (
    UNFINISHED_COPY,
    Database,
    check_schema,
    create_schema,
    is_unfinished_copy,
    load_epochs,
    load_head,
    lock_exclusively,
)
from tocsin.transfer.layout import TableLayout, list_layouts
from tocsin.transfer.restore import rebuild_derived
from tocsin.transfer.rows import (
    Row,
    RowWriter,
    advance_counter,
    compare_table,
    digest_table,
    empty_table,
)

_BATCH = 500
CopyProgress = Callable[[str, int, int], None]
"""Called with the name of a table, the rows that are copied, and all of its rows."""

_progress = Table(
    UNFINISHED_COPY,
    MetaData(),
    Column("name", String(100), primary_key=True),
    Column("source", String(40), nullable=False),  # the ID of the first epoch
    Column("rows", BigInteger, nullable=False),
    Column("last_key", Text),  # as JSON
)
_PRESENT = text(
    "SELECT count(DISTINCT pid) FROM pg_locks WHERE locktype = 'advisory' AND granted "
    "AND pid <> pg_backend_pid() "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseCopy:
    """A copy of all that is stored, from a database that no node uses to one of its own."""

    source: Database
    target: Database
    actor: str
    now: datetime
    progress: CopyProgress

    async def run(self) -> int:
        """Copy all tables, verify them, and return the number of rows; raises OperatorError.

        A copy that was interrupted is resumed.
        """
        await check_schema(self.source, is_exact=True)
        await self.source.read(_require_no_node)
        source_id = (await self.source.read(load_epochs))[0].id
        await self.target.write(_begin, source_id)
        for layout in list_layouts():
            await self._copy_table(layout)
        rows = 0
        for layout in list_layouts():
            expected = await self.source.snapshot(digest_table, layout)
            await self.target.snapshot(compare_table, layout, expected)
            rows += expected[0]
        await self.source.read(_require_no_node)
        await self.target.write(self._finish)
        return rows

    async def _copy_table(self, layout: TableLayout) -> None:
        total = await self.source.read(_count_rows, layout)
        done, last = await self.target.read(_load_progress, layout)
        while True:
            self.progress(layout.name, done, total)
            rows = await self.source.read(_read_batch, layout, last)
            if not rows:
                return
            last = [rows[-1][place] for place in layout.key_places]
            await self.target.write(_store_batch, layout, rows, done, last)
            done += len(rows)

    def _finish(self, connection: Connection) -> None:
        for layout in list_layouts():
            advance_counter(connection, layout)
        rebuild_derived(connection)
        _progress.drop(connection)
        target = f"epoch:{load_head(connection).epoch}"
        audit.record_local(connection, self.now, self.actor, "database.copy", target=target)


def is_in_use(connection: Connection) -> bool:
    """Return whether a node uses a PostgreSQL database; False for SQLite, which has a lock file."""
    return connection.dialect.name == "postgresql" and bool(connection.scalar(_PRESENT))


def _require_no_node(connection: Connection) -> None:
    if is_in_use(connection):
        raise OperatorError(
            "a node is using the database to copy; stop all nodes, because a copy of a "
            "database in use would not be consistent"
        )


def _begin(connection: Connection, source_id: str) -> None:
    """Create the schema of an empty target; raises OperatorError where it holds other data."""
    lock_exclusively(connection, UNFINISHED_COPY)
    if is_unfinished_copy(connection):
        begun_for = connection.scalar(select(_progress.c.source).limit(1))
        if begun_for != source_id:
            raise OperatorError(
                "the target is an unfinished copy of another database; empty the target"
            )
        return
    if connection.dialect.has_table(connection, "alembic_version"):
        raise OperatorError("the target is not empty; use the URL of an empty database")
    create_schema(connection)
    _progress.create(connection)
    layouts = list_layouts()
    for layout in layouts:
        empty_table(connection, layout)
    rows = [{"name": layout.name, "source": source_id, "rows": 0} for layout in layouts]
    connection.execute(insert(_progress), rows)


def _count_rows(connection: Connection, layout: TableLayout) -> int:
    return int(connection.scalars(select(func.count()).select_from(layout.table)).one())


def _load_progress(connection: Connection, layout: TableLayout) -> tuple[int, list[Any] | None]:
    """Return how many rows of a table are copied, and the key of the last one."""
    query = select(_progress.c.rows, _progress.c.last_key).where(_progress.c.name == layout.name)
    rows, last = connection.execute(query).one()
    return rows, None if last is None else orjson.loads(last)


def _read_batch(
    connection: Connection, layout: TableLayout, last: Sequence[Any] | None
) -> Sequence[Row]:
    """Return the rows after a key, in the order of the keys."""
    keys = [layout.table.c[layout.columns[place].name] for place in layout.key_places]
    query = select(*layout.values).order_by(*keys).limit(_BATCH)
    if last is not None:
        query = query.where(tuple_(*keys) > tuple_(*last, types=[key.type for key in keys]))
    return connection.execute(query).all()


def _store_batch(
    connection: Connection, layout: TableLayout, rows: Sequence[Row], done: int, last: list[Any]
) -> None:
    """Store rows and the progress in one transaction; OperatorError where another copy runs."""
    moved = (
        update(_progress)
        .where(_progress.c.name == layout.name, _progress.c.rows == done)
        .values(rows=done + len(rows), last_key=orjson.dumps(last).decode())
    )
    if connection.execute(moved).rowcount != 1:
        raise OperatorError(
            "another `tocsin db copy` is writing to the target; wait until it has finished"
        )
    RowWriter(connection, layout).write(rows)
