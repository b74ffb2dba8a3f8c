"""Queries for intervals in the coverage ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, select

from tocsin.accounting.intervals import Interval
from tocsin.incidents import BYTES, CoverageOutcome, StreamKey
from tocsin.store.tables import coverage

_AT_ONCE = 500
_c = coverage.c


def get_stream_key(row: RowMapping) -> StreamKey:
    """Return the stream of a ledger row."""
    return StreamKey(row["provider"], row["stream"])


def is_accounted(row: RowMapping) -> bool:
    """Whether the row records the outcome of an interval, rather than a failed read."""
    return row["outcome"] in tuple(CoverageOutcome)


def to_intervals(rows: Iterable[RowMapping]) -> list[Interval]:
    """Return the non-empty intervals of the rows."""
    return [_to_interval(row) for row in rows if is_accounted(row) and row["end"] > row["start"]]


def load_rows_between(
    connection: Connection, after: datetime, up_to: datetime
) -> Sequence[RowMapping]:
    """Return the ledger rows that were last extended in this period, in creation order."""
    then = select(coverage).where(_c.finished_at > after, _c.finished_at <= up_to)
    return connection.execute(then.order_by(_c.id)).mappings().all()


def load_latest_before(connection: Connection, key: StreamKey, first: Interval) -> list[Interval]:
    """Return the interval before `first` in the same source; an empty list if there is none."""
    earlier = _select_intervals(key, _c.source == first.source, _c.id < first.id)
    return _load_intervals(connection, earlier.order_by(_c.id.desc()).limit(1))


def load_overlapping(
    connection: Connection, key: StreamKey, source: str, start: int, end: int
) -> list[Interval]:
    """Return all intervals that overlap this part of a source."""
    within = (_c.source == source, _c.start <= end, _c.end >= start)
    return _load_intervals(connection, _select_intervals(key, *within))


def load_ending_at(connection: Connection, key: StreamKey, ends: Sequence[int]) -> list[Interval]:
    """Return the file intervals in a stream that end at these offsets, for all file names."""
    found = []
    for start in range(0, len(ends), _AT_ONCE):
        some = ends[start : start + _AT_ONCE]
        found += _load_intervals(
            connection, _select_intervals(key, _c.unit == BYTES, _c.end.in_(some))
        )
    return found


def _select_intervals(key: StreamKey, *conditions: ColumnElement[bool]) -> Select[Any]:
    return select(coverage).where(
        _c.provider == key.provider,
        _c.stream == key.stream,
        _c.outcome.in_(tuple(CoverageOutcome)),
        _c.end > _c.start,
        *conditions,
    )


def _load_intervals(connection: Connection, query: Select[Any]) -> list[Interval]:
    return to_intervals(connection.execute(query).mappings())


def _to_interval(row: RowMapping) -> Interval:
    return Interval(
        id=row["id"],
        source=row["source"],
        past=row["past"],
        unit=row["unit"],
        start=row["start"],
        end=row["end"],
        began=row["started_at"],
        ended=row["finished_at"],
    )
