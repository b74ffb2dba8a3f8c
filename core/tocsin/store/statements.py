"""SQL helpers: upserts, bulk execution, bounded counts, sequences in commit order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice
from sqlite3 import Connection as DriverConnection
from typing import TYPE_CHECKING, Any, Self, cast

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Boolean,
    ColumnElement,
    Connection,
    Dialect,
    FromClause,
    Insert,
    Integer,
    Select,
    Table,
    Text,
    TypeDecorator,
    Update,
    bindparam,
    func,
    literal,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.sql.operators import OperatorType
from sqlalchemy.types import TypeEngine

from tocsin.store.faults import DatabaseReplaced
from tocsin.store.insert_sets import InsertSet, Row
from tocsin.store.tables import EPOCH, sequences
from tocsin.store.text import dump_json

if TYPE_CHECKING:
    _ListBase = TypeDecorator[Any]
else:
    _ListBase = TypeDecorator

INCIDENT_NUMBER = "incident_number"
INCIDENT_CHANGE = "incident_change"
AUDIT_POSITION = "audit_position"
_EVENTS_KEPT_FROM = "events_kept_from"
Run = Callable[[Connection, Iterable[Row]], None]
_Processor = Callable[[Any], Any]
_SET = 5_000  # rows of one insert from arrays


class BulkStatement:
    """A statement with parameters as tuples in the order of `names`.

    An upsert is given as a function that builds it for the database of a connection, as
    `build_insert` does; the rows of one run have different keys. SQLAlchemy's own execution takes
    about 15 µs per row, most of it identical for every row. On PostgreSQL, one statement inserts
    all rows from arrays: a statement for each row takes longer than the insert itself.

    SQLite runs a statement for each row, or for `together` rows. A table with triggers needs this:
    each statement on it begins a savepoint, at which FTS5 writes what it has collected to the disk
    (https://sqlite.org/src/file/ext/fts5/fts5_main.c, `fts5SavepointMethod`).
    """

    def __init__(
        self,
        statement: Insert | Update | Callable[[Connection], Insert],
        names: Sequence[str],
        *,
        together: int = 1,
        added: Mapping[str, ColumnElement[Any]] | None = None,
    ) -> None:
        """Take a statement; PostgreSQL adds `added` to the values of columns, as InsertSet says."""
        self._statement = statement
        self.names = tuple(names)
        self._together = together
        self._added = added
        self._prepared: dict[str, _Prepared] = {}
        self._set: tuple[str, InsertSet] | None = None

    def run(self, connection: Connection, rows: Iterable[Row]) -> None:
        """Run the statement for each row, if any."""
        if connection.dialect.name == "postgresql" and not isinstance(self._statement, Update):
            self._insert_set(connection, rows)
            return
        prepared = self._prepare_for(connection)
        text, converted = prepared.text, prepared.convert(rows)
        if self._together == 1 and converted:
            connection.exec_driver_sql(text, converted)
            return
        for start in range(0, len(converted), self._together):
            some = converted[start : start + self._together]
            values = tuple(chain.from_iterable(some))
            connection.exec_driver_sql(_repeat_values(text, len(some)), values)

    def add(self, rows: Iterable[Row], name: str, more: int) -> Iterator[Row]:
        """Yield the rows with `more` added to the values of a column, if there is such a column."""
        if name not in self.names:
            yield from rows
            return
        at = self.names.index(name)
        for row in rows:
            yield (*row[:at], row[at] + more, *row[at + 1 :])

    def run_each(self, connection: Connection, rows: Iterable[Row]) -> set[int]:
        """Run the statement on SQLite; return the positions of the rows that changed something.

        `run` does not return which ones did.
        """
        prepared = self._prepare_for(connection)
        execute = _driver_connection(connection).execute
        converted = enumerate(prepared.convert(list(rows)))
        return {
            position for position, values in converted if execute(prepared.text, values).rowcount
        }

    def _build(self, connection: Connection) -> Insert | Update:
        statement = self._statement
        return statement if isinstance(statement, Insert | Update) else statement(connection)

    def build_set(self, connection: Connection, **options: Any) -> InsertSet:
        """Return the insert of rows as arrays; see InsertSet for the options."""
        statement = cast("Insert", self._build(connection))
        return InsertSet(statement, self.names, connection.dialect, **options)

    def _insert_set(self, connection: Connection, rows: Iterable[Row]) -> None:
        if self._set is None:
            built = self.build_set(connection, added=self._added)
            self._set = str(built.statement.compile(dialect=connection.dialect)), built
        text, built = self._set
        remaining = iter(rows)
        while some := list(islice(remaining, _SET)):
            connection.exec_driver_sql(text, tuple(built.arrange(some).values()))

    def _prepare_for(self, connection: Connection) -> _Prepared:
        dialect = connection.dialect
        if dialect.name not in self._prepared:
            self._prepared[dialect.name] = self._prepare(self._build(connection), dialect)
        return self._prepared[dialect.name]

    def _prepare(self, statement: Insert | Update, dialect: Dialect) -> _Prepared:
        names = list(self.names) if isinstance(statement, Insert) else None
        compiled = statement.compile(dialect=dialect, column_keys=names)
        order = compiled.positiontup or []
        if set(order) != set(self.names):
            raise RuntimeError(
                f"the statement has the parameters {order}, but received {self.names}"
            )
        places = [self.names.index(name) for name in order]
        processors: Mapping[str, Any] = compiled._bind_processors  # noqa: SLF001 - as it does itself
        return _Prepared(str(compiled), places, [processors.get(name) for name in order])


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A statement as the driver takes it, with the place and the converter of each parameter."""

    text: str
    places: Sequence[int]
    processors: Sequence[_Processor | None]

    def convert(self, rows: Iterable[Row]) -> list[Row]:
        """Return the parameters of each row, converted column by column, which is faster."""
        columns = list(zip(*rows, strict=True))
        if not columns:
            return []
        chosen = zip(self.processors, self.places, strict=True)
        converted = (_convert(processor, columns[at]) for processor, at in chosen)
        return list(zip(*converted, strict=True))


def _convert(processor: _Processor | None, values: Iterable[Any]) -> Iterable[Any]:
    return values if processor is None else map(processor, values)


def _repeat_values(statement: str, count: int) -> str:
    """Return an insert of one row as an insert of several."""
    before, values, after = re.split(r"(?<= VALUES )(\([?, ]+\))", statement, maxsplit=1)
    return f"{before}{', '.join([values] * count)}{after}"


class _ListType(_ListBase):
    """A list of texts or numbers, which SQLite takes as JSON."""

    impl = Text
    cache_ok = True

    def __init__(self, item: type[TypeEngine[Any]]) -> None:
        super().__init__()
        self.item = item

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(
            Text() if dialect.name == "sqlite" else postgresql.ARRAY(self.item())
        )

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return dump_json(list(value)) if dialect.name == "sqlite" else list(value)


class _IsIn(FunctionElement[bool]):
    type = Boolean()
    inherit_cache = True

    def self_group(self, against: OperatorType | None = None) -> Self:  # noqa: ARG002
        """Return this condition as it is: SQLite uses no index for SQLAlchemy's `... = 1`."""
        return self


@compiles(_IsIn, "sqlite")
def _compile_for_sqlite(element: _IsIn, compiler: Any, **options: Any) -> str:
    column, values = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({values}))"  # noqa: S608 - compiled by SQLAlchemy


@compiles(_IsIn, "postgresql")
def _compile_for_postgresql(element: _IsIn, compiler: Any, **options: Any) -> str:
    column, values = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} = ANY ({values})"


def is_in(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """Return whether the value of a column is in the list that the parameter `name` holds.

    The list is one value to the database, so one statement serves lists of any length.
    """
    item = BigInteger if isinstance(column.type, Integer) else Text
    return _IsIn(column, bind_list(name, item))


def bind_list(name: str, item: type[TypeEngine[Any]] = Text) -> BindParameter[Any]:
    """Return the parameter of a list, which is one value to the database."""
    return bindparam(name, type_=_ListType(item))


def build_insert(connection: Connection, table: Table) -> Any:
    """Build an insert with `on_conflict_do_nothing` and `on_conflict_do_update`."""
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    return dialect.insert(table)


MAX_COUNTED = 10_000
"""The limit up to which totals are exact."""


@dataclass(frozen=True, slots=True)
class Total:
    """Number of matching rows, exact up to a limit."""

    count: int
    exact: bool
    """False where there are more."""

    @classmethod
    def of(cls, counted: int) -> Self:
        """Return what `build_bounded_count` comes to."""
        return cls(min(counted, MAX_COUNTED), counted <= MAX_COUNTED)


def build_bounded_count(
    source: FromClause, conditions: Iterable[ColumnElement[bool]]
) -> Select[Any]:
    """Return the query of the number of matching rows, limited to MAX_COUNTED + 1."""
    some = select(literal(1)).select_from(source).where(*conditions).limit(MAX_COUNTED + 1)
    return select(func.count()).select_from(some.subquery())


def count_matching(
    connection: Connection, source: FromClause, conditions: Iterable[ColumnElement[bool]]
) -> Total:
    """Count the matching rows, up to MAX_COUNTED."""
    return Total.of(connection.scalars(build_bounded_count(source, conditions)).one())


FLOORS = "tocsin_floors"
"""The execution option with the highest numbers that are known to be issued, by sequence."""
ALLOTTED = "tocsin_allotted"
"""The entry of a connection's `info` for the highest numbers that its transaction allotted."""


def allot_numbers(connection: Connection, name: str, count: int) -> range:
    """Allot the next `count` numbers; the sequence is locked until this transaction ends.

    Raises DatabaseReplaced rather than assign a number that was already issued.
    """
    statement = (
        update(sequences)
        .where(sequences.c.name == name)
        .values(value=sequences.c.value + count)
        .returning(sequences.c.value)
    )
    last: int = connection.execute(statement).scalar_one()
    confirm_allotted(connection, name, last, count)
    return range(last - count + 1, last + 1)


def confirm_allotted(connection: Connection, name: str, last: int, count: int) -> None:
    """Record `count` allotted numbers up to `last`; raises DatabaseReplaced where issued before."""
    floor: int = connection.get_execution_options().get(FLOORS, {}).get(name, 0)
    if last - count < floor:
        raise DatabaseReplaced(
            f"the database was rolled back while in use: {name} {floor} had been issued, "
            f"the next one would be {last - count + 1}"
        )
    connection.info.get(ALLOTTED, {})[name] = last


def restart_sequences(connection: Connection, *names: str) -> None:
    """Let sequences begin again, for work that is done once for each of their numbers."""
    connection.execute(update(sequences).where(sequences.c.name.in_(names)).values(value=0))


def load_last_allotted(connection: Connection, name: str) -> int:
    """Return the highest committed number, 0 where there is none yet."""
    return int(
        connection.execute(select(sequences.c.value).where(sequences.c.name == name)).scalar_one()
    )


def record_events_kept_from(connection: Connection, moment: datetime) -> None:
    """Record that events before this time may have been removed."""
    value = (moment - EPOCH) // timedelta(microseconds=1)
    statement = build_insert(connection, sequences).values(name=_EVENTS_KEPT_FROM, value=value)
    connection.execute(
        statement.on_conflict_do_update(index_elements=["name"], set_={"value": value})
    )


def load_events_kept_from(connection: Connection) -> datetime:
    """Return the time from which on all events are kept."""
    query = select(sequences.c.value).where(sequences.c.name == _EVENTS_KEPT_FROM)
    return EPOCH + timedelta(microseconds=connection.execute(query).scalar() or 0)


_FREED_AT_ONCE = 500  # pages of 4 KB
_INCREMENTAL = 2


def reclaim_space(connection: Connection) -> bool:
    """Return some free pages of a SQLite file to the file system, and whether there are more.

    Nothing in files from before version 0.2, until they are vacuumed once with `auto_vacuum` set.
    """
    if connection.dialect.name != "sqlite":
        return False  # PostgreSQL's autovacuum works by itself
    if connection.exec_driver_sql("PRAGMA auto_vacuum").scalar_one() != _INCREMENTAL:
        return False
    # Each step frees one page, and SQLAlchemy takes none, since there are no rows
    driver = _driver_connection(connection)
    driver.execute(f"PRAGMA incremental_vacuum({_FREED_AT_ONCE})").fetchall()
    return bool(connection.exec_driver_sql("PRAGMA freelist_count").scalar_one())


def _driver_connection(connection: Connection) -> DriverConnection:
    return cast("DriverConnection", connection.connection.dbapi_connection)
