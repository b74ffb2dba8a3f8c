"""Rows of a table: read from a database, encoded as lines, and stored in another database."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from itertools import islice
from typing import Any

import orjson
from sqlalchemy import Connection, func, select, text
from sqlalchemy.util import await_only

from tocsin.errors import OperatorError
from tocsin.transfer.layout import ColumnKind, TableLayout

BATCH = 1_000
"""Rows that are read and stored at once."""
_DIGEST_BYTES = 16
Row = Sequence[Any]


class RowDigest:
    """Count and checksum of rows, the same in any order and on both kinds of database.

    With a key, nobody without it can check guesses of what the rows hold.
    """

    def __init__(self, layout: TableLayout, key: bytes = b"") -> None:
        self.count = 0
        self._sum = 0
        self._hash = partial(blake2b, digest_size=_DIGEST_BYTES, key=key)
        self._documents = layout.find_places(ColumnKind.JSON)
        self._bytes = layout.find_places(ColumnKind.BYTES)

    def add(self, row: Row) -> None:
        """Add a row."""
        if self._documents or self._bytes:
            row = list(row)
            for place in self._documents:
                if row[place] is not None:
                    row[place] = _normalize_json(row[place])
            _encode_bytes(row, self._bytes)
        line = orjson.dumps(row, default=list)
        self._sum += int.from_bytes(self._hash(line).digest())
        self.count += 1

    @property
    def value(self) -> str:
        """The checksum."""
        return f"{self._sum % (1 << 8 * _DIGEST_BYTES):0{2 * _DIGEST_BYTES}x}"


def _parse_float(number: str) -> float | int:
    """Return a number alike whether or not it was stored with a fraction of zero."""
    value = float(number)
    return int(value) if value.is_integer() else value


def _normalize_json(document: str) -> str:
    """Return JSON without what PostgreSQL does not keep: order, spaces and forms of numbers."""
    try:
        parsed = json.loads(document, parse_float=_parse_float)
    except ValueError:  # SQLite stores any text
        return document
    return json.dumps(parsed, sort_keys=True, separators=(",", ":"))


def _encode_bytes(row: list[Any], places: Iterable[int]) -> None:
    for place in places:
        if row[place] is not None:
            row[place] = b64encode(row[place]).decode()


def encode_row(layout: TableLayout) -> Callable[[Row], bytes]:
    """Return the function that encodes a row as one line."""
    binary = layout.find_places(ColumnKind.BYTES)

    def encode(row: Row) -> bytes:
        values = list(row)
        _encode_bytes(values, binary)
        return orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE)

    return encode


def decode_row(layout: TableLayout) -> Callable[[bytes], list[Any]]:
    """Return the function that decodes a line; it raises ValueError for a damaged one."""
    binary, width = layout.find_places(ColumnKind.BYTES), len(layout.columns)

    def decode(line: bytes) -> list[Any]:
        row = orjson.loads(line)
        if not isinstance(row, list) or len(row) != width:
            raise ValueError(f"found no row of {width} values")
        for place in binary:
            if row[place] is not None:
                row[place] = b64decode(row[place], validate=True)
        return row

    return decode


def read_rows(connection: Connection, layout: TableLayout) -> Iterator[Row]:
    """Yield the rows of a table, in any order, without holding all of them."""
    result = connection.execute(
        select(*layout.values), execution_options={"yield_per": BATCH, "stream_results": True}
    )
    yield from result


def close_cursors(connection: Connection) -> None:
    """Close the cursors of rows that were read in this transaction, so that tables can be altered.

    asyncpg leaves them open on PostgreSQL.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("CLOSE ALL")


class RowWriter:
    """Stores rows in one table, in a transaction that has begun."""

    def __init__(self, connection: Connection, layout: TableLayout) -> None:
        self._connection = connection
        self.layout = layout

    def write(self, rows: Iterable[Row]) -> None:
        """Store rows."""
        store = self._copy if self._connection.dialect.name == "postgresql" else self._insert
        for batch in split_batches(rows):
            store([tuple(row) for row in batch])

    def _insert(self, rows: list[tuple[Any, ...]]) -> None:
        quote = self._connection.dialect.identifier_preparer.quote
        names = ", ".join(quote(column.name) for column in self.layout.columns)
        values = ", ".join("?" * len(self.layout.columns))
        statement = f"INSERT INTO {quote(self.layout.name)} ({names}) VALUES ({values})"  # noqa: S608 - quoted
        self._connection.exec_driver_sql(statement, rows)

    def _copy(self, rows: list[tuple[Any, ...]]) -> None:
        """Store rows with COPY, which costs the server less than inserts."""
        driver: Any = self._connection.connection.driver_connection
        columns = [column.name for column in self.layout.columns]
        await_only(driver.copy_records_to_table(self.layout.name, records=rows, columns=columns))


@contextmanager
def suspend_triggers(connection: Connection, layout: TableLayout) -> Iterator[None]:
    """Store rows without PostgreSQL's triggers.

    They change a few rows of counts again and again, and within one transaction, each change has to
    pass by all earlier versions of its row.
    """
    if connection.dialect.name != "postgresql":
        yield
        return
    table = connection.dialect.identifier_preparer.quote(layout.name)
    connection.exec_driver_sql(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    yield
    connection.exec_driver_sql(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def split_batches(rows: Iterable[Row], size: int = BATCH) -> Iterator[list[Row]]:
    """Yield the rows in batches."""
    remaining = iter(rows)
    while batch := list(islice(remaining, size)):
        yield batch


def empty_table(connection: Connection, layout: TableLayout) -> None:
    """Remove what migrations have stored in a new table."""
    connection.execute(layout.table.delete())


def advance_counter(connection: Connection, layout: TableLayout) -> None:
    """Let PostgreSQL count the rows of a table on from the highest one; SQLite does so itself."""
    keys = [layout.columns[place] for place in layout.key_places]
    if connection.dialect.name != "postgresql" or len(keys) != 1:
        return
    [key] = keys
    if key.kind is not ColumnKind.INTEGER:
        return
    names = {"table": layout.name, "column": key.name}
    sequence = connection.scalar(text("SELECT pg_get_serial_sequence(:table, :column)"), names)
    if sequence is not None:
        highest = connection.scalar(select(func.max(layout.table.c[key.name])))
        connection.execute(
            text("SELECT setval(CAST(:sequence AS regclass), :value, :is_used)"),
            {"sequence": sequence, "value": highest or 1, "is_used": highest is not None},
        )


def digest_table(connection: Connection, layout: TableLayout, key: bytes = b"") -> tuple[int, str]:
    """Return the number of rows of a table, and their checksum."""
    digest = RowDigest(layout, key)
    for row in read_rows(connection, layout):
        digest.add(row)
    return digest.count, digest.value


def compare_table(
    connection: Connection, layout: TableLayout, expected: tuple[int, str], key: bytes = b""
) -> None:
    """Raise OperatorError where a table holds other rows than expected."""
    found = digest_table(connection, layout, key)
    if found != expected:
        raise OperatorError(
            f"the table {layout.name} has {found[0]} rows (checksum {found[1]}), expected "
            f"{expected[0]} (checksum {expected[1]})"
        )
