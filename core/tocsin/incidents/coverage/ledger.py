"""Coverage ledger: the intervals of each source that were read, lost or passed over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, RowMapping, bindparam, insert, select, update

from tocsin.clock import isoformat
from tocsin.incidents.coverage.positions import StreamKey
from tocsin.model import Covered
from tocsin.store import clean_text
from tocsin.store.tables import EPOCH, coverage


class CoverageOutcome(StrEnum):
    """What became of an interval; any other outcome of a row is a read failure."""

    READ = "read"
    LOST = "lost"
    PASSED_OVER = "passed-over"


BYTES = "bytes"
"""The unit of intervals of a file; others are of time, in microseconds."""
MAX_SOURCE = 4_096
MAX_REASON = 1_000
# Consecutive intervals share a row, so that an idle feed does not fill the ledger; but never across
# a full hour, so that the report of a period can be repeated later.
ROW_SPAN = timedelta(hours=1)
# Backfills write rows between those of the regular reads
_CANDIDATES = 5
_IDENTICAL_COLUMNS = ("unit", "outcome", "reason", "past")

_latest = (
    select(coverage)
    .where(
        coverage.c.provider == bindparam("provider"),
        coverage.c.stream == bindparam("stream"),
        coverage.c.source == bindparam("source"),
    )
    .order_by(coverage.c.id.desc())
    .limit(_CANDIDATES)
)


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """Record counts of one page."""

    records: int = 0
    new: int = 0
    changed: int = 0
    rejected: int = 0

    def __add__(self, other: ReadCounts) -> ReadCounts:
        return ReadCounts(
            self.records + other.records,
            self.new + other.new,
            self.changed + other.changed,
            self.rejected + other.rejected,
        )


_NOTHING = ReadCounts()
_COUNTS = tuple(asdict(_NOTHING))
EXTENSION = (
    update(coverage)
    .where(coverage.c.id == bindparam("extended_id"))
    .values(
        {name: bindparam(f"extended_{name}") for name in ("start", "end", "finished_at")}
        | {name: coverage.c[name] + bindparam(f"extended_{name}") for name in ("pages", *_COUNTS)}
    )
)
"""Extends a row by what was read."""


@dataclass(frozen=True, slots=True)
class CoverageRecord:
    """Record of a read in the ledger."""

    row: int | None
    """The ID of the row that holds the counts, None if there is nothing to record."""
    extension: Mapping[str, Any] | None
    """The parameters with which to run `EXTENSION` in this transaction, None if it is complete."""


@dataclass(frozen=True, slots=True)
class ReadFailure:
    """Outcome and reason of a failed read."""

    outcome: str
    reason: str


def record_coverage(
    connection: Connection,
    key: StreamKey,
    intervals: Sequence[Covered],
    counts: ReadCounts,
    now: datetime,
    *,
    past: bool,
) -> CoverageRecord:
    """Record intervals with what was read of them; without any, this moment.

    Others who extend the row wait for this transaction. The extension of a single interval is
    therefore left to the caller, who runs it as late as possible.
    """
    if not intervals and counts != _NOTHING:
        intervals = (Covered(source=key.stream, start=now, end=now),)
    counted = next((at for at, interval in enumerate(intervals) if interval.lost is None), 0)
    ids, extension = [], None
    for at, interval in enumerate(intervals):
        row = _build_row(key, interval, _choose_outcome(interval), past=past)
        own = counts if at == counted else _NOTHING
        extension = _find_extension(connection, row, now, counts=own)
        if extension is None:
            ids.append(_insert(connection, row, now, counts=own))
        else:
            ids.append(int(extension["extended_id"]))
            if len(intervals) > 1:  # the next interval may continue this one
                connection.execute(EXTENSION, extension)
                extension = None
    return CoverageRecord(ids[counted] if ids else None, extension)


def _choose_outcome(interval: Covered) -> str:
    if interval.lost is not None:
        return CoverageOutcome.LOST
    return CoverageOutcome.READ if interval.passed_over is None else CoverageOutcome.PASSED_OVER


def _build_row(
    key: StreamKey, interval: Covered, outcome: str, *, past: bool = False
) -> dict[str, Any]:
    return {
        "provider": key.provider,
        "stream": key.stream,
        "source": clean_text(interval.source, MAX_SOURCE),
        "unit": BYTES if isinstance(interval.start, int) else "time",
        "outcome": outcome,
        "reason": clean_text(interval.lost or interval.passed_over, MAX_REASON),
        "past": past,
        "start": _to_number(interval.start),
        "end": _to_number(interval.end),
    }


def record_failure(
    connection: Connection,
    key: StreamKey,
    failure: ReadFailure,
    now: datetime,
    *,
    continues: bool,
    times: int = 1,
) -> int:
    """Record failed reads, as many as `times`, and return the ID of their row.

    Those that `continue` an earlier failure extend its row.
    """
    interval = Covered(source=key.stream, start=now, end=now, lost=failure.reason)
    row = _build_row(key, interval, failure.outcome)
    if continues and (
        extension := _find_extension(connection, row, now, adjacent=False, times=times)
    ):
        connection.execute(EXTENSION, extension)
        return int(extension["extended_id"])
    return _insert(connection, row, now, times=times)


def _find_extension(
    connection: Connection,
    row: Mapping[str, Any],
    now: datetime,
    *,
    adjacent: bool = True,
    times: int = 1,
    counts: ReadCounts = _NOTHING,
) -> dict[str, Any] | None:
    """Return the parameters of `EXTENSION` for a row, None if the interval continues none."""
    latest = connection.execute(_latest, row).mappings().all()
    candidates = _iter_extendable_rows(latest)
    found = next((old for old in candidates if _continues(old, row, now, adjacent=adjacent)), None)
    if found is None:
        return None
    start = row["start"] if adjacent and _is_moment(found) else found["start"]
    values = {"id": found["id"], "start": start, "end": row["end"], "finished_at": now}
    values |= {"pages": times, **asdict(counts)}
    return {f"extended_{name}": value for name, value in values.items()}


def _iter_extendable_rows(latest: Sequence[RowMapping]) -> Iterator[RowMapping]:
    """Yield the rows that may be extended, the latest first, but none from before a loss.

    So everything read since a loss is in rows with greater IDs, distinct from what was read before.
    """
    for place, row in enumerate(latest):
        if row["outcome"] == CoverageOutcome.LOST:
            if place == 0:
                yield row
            return
        yield row


def _continues(
    latest: RowMapping, row: Mapping[str, Any], now: datetime, *, adjacent: bool
) -> bool:
    same_hour = timedelta(0) <= now - latest["started_at"] and _get_hour(now) == _get_hour(
        latest["started_at"]
    )
    # Pushed incidents cover single moments, of which a row holds the latest
    are_moments = _is_moment(latest) and _is_moment(row)
    fits = not adjacent or are_moments or latest["end"] == row["start"]
    return (
        same_hour and fits and all(latest[column] == row[column] for column in _IDENTICAL_COLUMNS)
    )


def _is_moment(row: Mapping[Any, Any]) -> bool:
    return bool(row["unit"] == "time" and row["start"] == row["end"])


def _get_hour(moment: datetime) -> int:
    return (moment - EPOCH) // ROW_SPAN


def _insert(
    connection: Connection,
    row: Mapping[str, Any],
    now: datetime,
    *,
    times: int = 1,
    counts: ReadCounts = _NOTHING,
) -> int:
    span = {"started_at": now, "finished_at": now, "pages": times}
    inserted = connection.execute(insert(coverage).values({**row, **asdict(counts), **span}))
    key = inserted.inserted_primary_key
    return int(key[0]) if key else 0


def _to_number(point: datetime | int) -> int:
    return point if isinstance(point, int) else (point - EPOCH) // timedelta(microseconds=1)


def list_coverage(connection: Connection, provider: str | None, limit: int) -> list[dict[str, Any]]:
    """Return the latest rows of the ledger, the newest first."""
    query = select(coverage).order_by(coverage.c.id.desc()).limit(limit)
    if provider is not None:
        query = query.where(coverage.c.provider == provider)
    return [_represent_interval(row) for row in connection.execute(query)]


def _represent_interval(row: Row[Any]) -> dict[str, Any]:
    return {
        "provider": row.provider,
        "stream": row.stream,
        "source": row.source,
        "from": represent_point(row.start, row.unit),
        "to": represent_point(row.end, row.unit),
        "outcome": row.outcome,
        "reason": row.reason,
        "pages": row.pages,
        "records": row.records,
        "new": row.new,
        "changed": row.changed,
        "rejected": row.rejected,
        "finished_at": isoformat(row.finished_at),
        "past": row.past,
    }


def represent_point(number: int, unit: str) -> str | int:
    """Return the JSON of one end of an interval: a byte offset or a time."""
    return number if unit == BYTES else isoformat(EPOCH + timedelta(microseconds=number))
