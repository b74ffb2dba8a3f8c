"""Monthly partitions of events, deliveries and attempts on PostgreSQL; SQLite has none.

The rows of a month are those whose keys were made in it, since these are ULIDs. The tables from
before partitions are the first one, and what belongs to no month is in another. Functions of the
database change partitions, so that the service need not own the tables (migration 0043).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Connection, false, text

from tocsin.identifiers import first_id

PARTITIONED = ("events", "deliveries", "attempts")
"""Tables with partitions."""
_OTHER = "other"
_NAMES = text(
    "SELECT inhparent::regclass::text AS parent, relname FROM pg_inherits "
    "JOIN pg_class ON pg_class.oid = inhrelid "
    "WHERE inhparent IN ('events'::regclass, 'deliveries'::regclass, 'attempts'::regclass)"
)
_SUFFIX = re.compile(r"(?P<before>before_)?(?P<year>\d{4})_(?P<month>\d\d)")
_ADD = text("SELECT tocsin_add_month(CAST(:month AS date))")
_ANALYZE = text("SELECT tocsin_analyze()")
_ANALYZED = text(
    "SELECT count(DISTINCT tablename) FROM pg_stats WHERE schemaname = current_schema() "
    "AND inherited AND tablename IN ('events', 'deliveries', 'attempts')"
)
_DROP = text("SELECT tocsin_drop_month(:suffix)")
_LOCK = text("LOCK TABLE ONLY events, ONLY deliveries, ONLY attempts IN ACCESS EXCLUSIVE MODE")
_KEEP = text("LOCK TABLE ONLY events, ONLY deliveries, ONLY attempts IN ACCESS SHARE MODE")
LOCK_MILLISECONDS = 300
"""How long a change of partitions waits for the tables, since others wait behind it."""
MAX_COUNTED_OTHERS = 1_000


@dataclass(frozen=True, slots=True, order=True)
class PartitionMonth:
    """A month with partitions, or the time before the first month."""

    end: datetime
    start: datetime | None
    """None for the tables from before partitions."""

    @property
    def suffix(self) -> str:
        """The end of the names of its partitions."""
        return f"before_{self.end:%Y_%m}" if self.start is None else f"{self.start:%Y_%m}"

    def is_before(self, column: ColumnElement[str], kind: str) -> ColumnElement[bool]:
        """Return the condition that an ID was made before this month."""
        return false() if self.start is None else column < first_id(kind, self.start)

    def is_after(self, column: ColumnElement[str], kind: str) -> ColumnElement[bool]:
        """Return the condition that an ID was made after this month."""
        return column >= first_id(kind, self.end)

    def holds(self, column: ColumnElement[str], kind: str) -> ColumnElement[bool]:
        """Return the condition that an ID was made in this month."""
        has_ended = column < first_id(kind, self.end)
        return (
            has_ended if self.start is None else has_ended & (column >= first_id(kind, self.start))
        )


def start_of_month(moment: datetime, months: int = 0) -> datetime:
    """Return the start of the month of a time, or of a month so many months later."""
    years, month = divmod(moment.month - 1 + months, 12)
    return datetime(moment.year + years, month + 1, 1, tzinfo=UTC)


def has_partitions(connection: Connection) -> bool:
    """Return whether the tables have partitions."""
    return connection.dialect.name == "postgresql"


def list_months(connection: Connection) -> list[PartitionMonth]:
    """Return the months for which all tables have a partition, the oldest first."""
    complete = set.intersection(*_load_suffixes(connection).values())
    return sorted(_parse_suffix(suffix) for suffix in complete if suffix != _OTHER)


def find_missing_partitions(connection: Connection) -> list[str]:
    """Return the names of partitions that a table lacks and another one has."""
    found = _load_suffixes(connection)
    known = set.union(*found.values())
    return sorted(f"{table}_{suffix}" for table in found for suffix in known - found[table])


def _load_suffixes(connection: Connection) -> dict[str, set[str]]:
    """Return the ends of the names of partitions, by table."""
    found: dict[str, set[str]] = {table: set() for table in PARTITIONED}
    if has_partitions(connection):
        for parent, name in connection.execute(_NAMES):
            found[parent].add(name.removeprefix(f"{parent}_"))
    return found


def _parse_suffix(suffix: str) -> PartitionMonth:
    match = _SUFFIX.fullmatch(suffix)
    if match is None:
        raise ValueError(f"unknown partition: {suffix}")
    named = datetime(int(match["year"]), int(match["month"]), 1, tzinfo=UTC)
    if match["before"]:
        return PartitionMonth(named, None)
    return PartitionMonth(start_of_month(named, 1), named)


def add_month(connection: Connection, month: datetime) -> bool:
    """Make the missing partitions of a month, and return whether there were any.

    Rows of the month that were stored elsewhere meanwhile are moved. Nodes that do the same wait.
    """
    return bool(connection.scalar(_ADD, {"month": month.date()}))


def limit_lock_waits(connection: Connection, milliseconds: int) -> None:
    """Let this transaction wait for any lock no longer than this; everyone else waits behind it."""
    connection.execute(text(f"SET LOCAL lock_timeout = {milliseconds:d}"))


def is_analyzed(connection: Connection) -> bool:
    """Return whether the planner knows the values of the tables as a whole."""
    return bool(connection.scalar(_ANALYZED) == len(PARTITIONED))


def analyze_partitions(connection: Connection) -> None:
    """Count the values of the tables as a whole for the planner, from samples."""
    connection.execute(_ANALYZE)


def lock_partitions(connection: Connection, milliseconds: int) -> None:
    """Lock the tables until this transaction ends; raises DBAPIError where that takes longer."""
    limit_lock_waits(connection, milliseconds)
    connection.execute(_LOCK)


def keep_partitions(connection: Connection) -> None:
    """Keep months from being dropped until this transaction ends.

    The rows of a dropped month are missing from snapshots that were taken before, too. Call it
    before the first query, which takes the snapshot.
    """
    connection.execute(_KEEP)


def drop_month(connection: Connection, month: PartitionMonth) -> None:
    """Drop the partitions of a month with their rows; raises DBAPIError where one is missing."""
    connection.execute(_DROP, {"suffix": month.suffix})


def count_others(connection: Connection) -> int:
    """Return the number of rows of no month, up to MAX_COUNTED_OTHERS in each table."""
    if not has_partitions(connection):
        return 0
    counted = 0
    for table in PARTITIONED:
        some = text(
            f"SELECT count(*) FROM (SELECT FROM {table}_{_OTHER} LIMIT {MAX_COUNTED_OTHERS}) AS o"  # noqa: S608 - constants
        )
        counted += connection.scalars(some).one()
    return counted
