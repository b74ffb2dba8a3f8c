"""Gauges of what grows: the oldest row of each kind, and the bytes of each table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Column, Connection, Select, func, select, text

from tocsin.metrics import Metrics
from tocsin.store import PARTITIONED, count_others, list_months
from tocsin.store.tables import (
    EPOCH,
    audit,
    coverage,
    documents,
    events,
    incidents,
    metadata,
    quarantine,
    relations,
    sessions,
)


def _select_first(key: Column[Any], column: Column[datetime]) -> Select[Any]:
    return select(column).order_by(key).limit(1)


# The smallest value where there is an index, elsewhere that of the first row
_OLDEST: Mapping[str, Select[Any]] = {
    "events": select(func.min(events.c.timestamp)),
    "incidents": select(func.min(incidents.c.updated_at)),
    "sessions": _select_first(sessions.c.id, sessions.c.updated_at),
    "search": _select_first(documents.c.id, documents.c.at),
    "graph": select(func.min(relations.c.last_seen)),
    "coverage": select(func.min(coverage.c.finished_at)),
    "quarantine": _select_first(quarantine.c.id, quarantine.c.created_at),
    "audit": _select_first(audit.c.id, audit.c.at),
}
# Reads the pages of the whole file, which takes a second per GB or so
_SQLITE = text(
    "SELECT m.tbl_name, sum(s.pgsize) FROM dbstat s JOIN sqlite_schema m ON m.name = s.name "
    "WHERE s.aggregate = TRUE GROUP BY m.tbl_name"
)
# Partitions count for their table
_POSTGRES = text(
    "SELECT coalesce(parent.relname, c.relname), sum(pg_total_relation_size(c.oid)) "
    "FROM pg_class c LEFT JOIN pg_inherits ON inhrelid = c.oid "
    "LEFT JOIN pg_class parent ON parent.oid = inhparent "
    "WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace GROUP BY 1"
)
_HAS_DBSTAT = text("SELECT sqlite_compileoption_used('ENABLE_DBSTAT_VTAB')")
INDEX = "documents_index"


OVERDUE = timedelta(days=2)
"""How much older than its retention a record may be: removal runs hourly, and only on one node."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What is stored."""

    oldest: Mapping[str, datetime | None]
    """The time of the oldest row of each kind; None without any."""
    bytes: Mapping[str, int]
    """The size of each table with its indexes; empty where SQLite cannot say."""
    last_month: datetime | None
    """The end of the last month that has partitions; None without partitions."""
    others: int
    """The number of rows in partitions of no month."""


def measure_growth(connection: Connection) -> Growth:
    """Measure what is stored."""
    months = list_months(connection)
    return Growth(
        oldest=find_oldest(connection),
        bytes=measure_tables(connection),
        last_month=months[-1].end if months else None,
        others=count_others(connection),
    )


def find_oldest(connection: Connection) -> dict[str, datetime | None]:
    """Return the time of the oldest row of each kind, None without any."""
    return {kind: connection.scalar(query) for kind, query in _OLDEST.items()}


def measure_tables(connection: Connection) -> dict[str, int]:
    """Return the bytes of each table with its indexes."""
    query = _POSTGRES
    if connection.dialect.name == "sqlite":
        if not connection.scalar(_HAS_DBSTAT):
            return {}
        query = _SQLITE
    sizes = dict.fromkeys(metadata.tables, 0)
    for name, size in connection.execute(query):
        # SQLite stores its search index in tables of its own
        owner = "documents" if name.startswith(INDEX) else name
        if owner in sizes:
            sizes[owner] += int(size)
    return sizes


class GrowthGauges:
    """Gauges that the retention loop refreshes once an hour."""

    def __init__(self, metrics: Metrics) -> None:
        self._oldest = metrics.gauge(
            "tocsin_oldest_row_timestamp_seconds",
            "Time of the oldest stored record of the kind; retention compares it with the age "
            "limit",
            "kind",
        )
        self._kept = metrics.gauge(
            "tocsin_retention_seconds",
            "Age at which retention removes records of a kind, for kinds with an age limit",
            "kind",
        )
        self._bytes = metrics.gauge(
            "tocsin_table_bytes", "Size of a table including its indexes, in bytes", "table"
        )
        self._last_month = metrics.gauge(
            "tocsin_partitions_end_timestamp_seconds",
            "End of the last month for which partitions exist (PostgreSQL only)",
            "table",
        )
        self._others = metrics.gauge(
            "tocsin_partitions_other_rows",
            "Rows from months without partitions (PostgreSQL only)",
        )

    def show_limits(self, limits: Mapping[str, timedelta]) -> None:
        """Show how long records of each kind are kept."""
        for kind, keep in limits.items():
            self._kept.labels(kind).set(keep.total_seconds())

    def show(self, growth: Growth) -> None:
        """Show these measurements."""
        self._oldest.clear()
        for kind, moment in growth.oldest.items():
            if moment is not None:
                self._oldest.labels(kind).set((moment - EPOCH).total_seconds())
        self._others.set(growth.others)
        if growth.last_month is not None:
            for table in PARTITIONED:
                self._last_month.labels(table).set((growth.last_month - EPOCH).total_seconds())
        for table, size in growth.bytes.items():
            self._bytes.labels(table).set(size)
