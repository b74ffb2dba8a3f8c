"""Coverage report for a period."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping

from tocsin.accounting.coverage_queries import (
    get_stream_key,
    is_accounted,
    load_ending_at,
    load_latest_before,
    load_overlapping,
    load_rows_between,
    to_intervals,
)
from tocsin.accounting.gaps import Gap, find_gaps
from tocsin.accounting.intervals import MAX_LISTED, Interval, Period
from tocsin.accounting.stalled_streams import STALL_TOLERANCE, find_stalled_streams, load_last_reads
from tocsin.clock import isoformat
from tocsin.incidents import (
    BYTES,
    ROW_SPAN,
    CoverageOutcome,
    StreamKey,
    iter_still_lost,
    represent_point,
)
from tocsin.stops import StopKind, list_stops

_SOURCE = ("provider", "stream", "source", "unit")
_COUNTED = ("records", "new", "changed", "rejected")


@dataclass(frozen=True, slots=True)
class CoverageReport:
    """Coverage in a period, with each item as JSON."""

    coverage: list[dict[str, Any]]
    """Intervals that Tocsin has read, by source."""
    gaps: list[dict[str, Any]]
    lost: list[dict[str, Any]]
    """Intervals that Tocsin could not read and has not read since, with the reason."""
    passed_over: list[dict[str, Any]]
    """Intervals that were skipped on purpose, with the reason."""
    failures: list[dict[str, Any]]
    """Failed reads, and whether Tocsin has read the stream since then."""
    silent: list[dict[str, Any]]
    """Streams whose reads are overdue although no failure is recorded."""

    @property
    def quarantined(self) -> int:
        """The number of quarantined records."""
        return sum(source["rejected"] for source in self.coverage)


def report_coverage(connection: Connection, period: Period) -> CoverageReport:
    """Return the coverage report for the period."""
    # A row spans at most ROW_SPAN, so these include all rows that were extended at the same time
    around = load_rows_between(connection, period.since - ROW_SPAN, period.until + ROW_SPAN)
    rows = [row for row in around if row["finished_at"] in period]
    failures = [row for row in rows if not is_accounted(row)]
    recently, read = period.until - STALL_TOLERANCE, load_last_reads(connection)
    lately = (row for row in around if row["finished_at"] > recently)
    failing = {get_stream_key(row) for row in lately if not is_accounted(row)}
    failing |= _list_stopped_streams(connection, read, Period(recently, period.until))
    passed_over = (row for row in rows if row["outcome"] == CoverageOutcome.PASSED_OVER)
    return CoverageReport(
        coverage=_list_sources(row for row in rows if is_accounted(row)),
        gaps=_list_gaps(connection, around, period),
        lost=_list_lost(
            connection, [row for row in rows if row["outcome"] == CoverageOutcome.LOST]
        ),
        passed_over=[_represent_unread(row, row["start"], row["end"]) for row in passed_over],
        failures=[_represent_failure(row, read.get(get_stream_key(row))) for row in failures],
        silent=find_stalled_streams(connection, read, failing, period),
    )


def _list_stopped_streams(
    connection: Connection, streams: Iterable[StreamKey], period: Period
) -> set[StreamKey]:
    """Return the streams of providers that were disabled at any time in the period."""
    stops = list_stops(connection, period.since, period.until, MAX_LISTED)
    stopped = {stop.name for stop in stops if stop.kind is StopKind.PROVIDER}
    return {key for key in streams if key.provider in stopped}


def _list_sources(rows: Iterable[RowMapping]) -> list[dict[str, Any]]:
    by_source: dict[tuple[str, ...], list[RowMapping]] = defaultdict(list)
    for row in rows:
        by_source[tuple(row[name] for name in _SOURCE)].append(row)
    return [_represent_source(by_source[key]) for key in sorted(by_source)]


def _represent_source(rows: Sequence[RowMapping]) -> dict[str, Any]:
    unit = rows[0]["unit"]
    return {
        "provider": rows[0]["provider"],
        "stream": rows[0]["stream"],
        "source": rows[0]["source"],
        "from": represent_point(min(row["start"] for row in rows), unit),
        "to": represent_point(max(row["end"] for row in rows), unit),
        "intervals": len(rows),
        "stretches": len(rows),  # the former name
        **{name: sum(row[name] for row in rows) for name in _COUNTED},
        "read_at": isoformat(max(row["finished_at"] for row in rows)),
    }


def _list_gaps(
    connection: Connection, rows: Iterable[RowMapping], period: Period
) -> list[dict[str, Any]]:
    """Return the gaps of all streams, in the order in which they were found."""
    by_stream: dict[StreamKey, list[RowMapping]] = defaultdict(list)
    for row in rows:
        by_stream[get_stream_key(row)].append(row)
    gaps = [
        (key, gap)
        for key, its_rows in by_stream.items()
        for gap in _find_stream_gaps(connection, key, to_intervals(its_rows), period)
    ]
    gaps.sort(key=lambda key_and_gap: key_and_gap[1].before.id)
    return [_represent_gap(key, gap) for key, gap in gaps]


def _find_stream_gaps(
    connection: Connection, key: StreamKey, around: Sequence[Interval], period: Period
) -> list[Gap]:
    """Return the gaps in one stream.

    Intervals that were read after the period, or long before it, can close gaps in the period.
    Only if there seems to be a gap, the function queries the ledger for such intervals.
    """
    reported_ids = {interval.id for interval in around if interval.ended in period}
    known = {interval.id: interval for interval in around}
    for first in {interval.source: interval for interval in reversed(around)}.values():
        known |= _index_by_id(load_latest_before(connection, key, first))
    suspected = find_gaps(known.values(), reported_ids)
    if not suspected:
        return []
    known |= _index_by_id(_load_evidence(connection, key, suspected))
    return find_gaps(known.values(), reported_ids)


def _load_evidence(connection: Connection, key: StreamKey, gaps: Iterable[Gap]) -> list[Interval]:
    ends = sorted({gap.before.start for gap in gaps if gap.before.unit == BYTES})
    found = load_ending_at(connection, key, ends)
    of_feeds: dict[str, list[Gap]] = defaultdict(list)
    for gap in gaps:
        if gap.before.unit != BYTES:
            of_feeds[gap.before.source].append(gap)
    for source, its_gaps in of_feeds.items():
        start = min(gap.start for gap in its_gaps)
        end = max(gap.before.start for gap in its_gaps)
        found += load_overlapping(connection, key, source, start, end)
    return found


def _index_by_id(intervals: Iterable[Interval]) -> dict[int, Interval]:
    return {interval.id: interval for interval in intervals}


def _represent_gap(key: StreamKey, gap: Gap) -> dict[str, Any]:
    unit = gap.before.unit
    return {
        "provider": key.provider,
        "stream": key.stream,
        "source": gap.before.source,
        "from": represent_point(gap.start, unit),
        "to": represent_point(gap.before.start, unit),
        "found_at": isoformat(gap.before.began),
    }


def _list_lost(connection: Connection, rows: Sequence[RowMapping]) -> list[dict[str, Any]]:
    """Return the lost intervals that have not been read since, the oldest first."""
    files = [(row, (row["start"], row["end"])) for row in rows if row["unit"] == BYTES]
    feeds = iter_still_lost(connection, (row for row in rows if row["unit"] != BYTES))
    lost = sorted([*files, *feeds], key=lambda row_and_span: row_and_span[0]["id"])
    return [_represent_unread(row, *span) for row, span in lost]


def _represent_unread(row: RowMapping, start: int, end: int) -> dict[str, Any]:
    return {
        "provider": row["provider"],
        "stream": row["stream"],
        "source": row["source"],
        "from": represent_point(start, row["unit"]),
        "to": represent_point(end, row["unit"]),
        "reason": row["reason"],
        "found_at": isoformat(row["started_at"]),
    }


def _represent_failure(row: RowMapping, read_at: datetime | None) -> dict[str, Any]:
    return {
        "provider": row["provider"],
        "stream": row["stream"],
        "outcome": row["outcome"],
        "reason": row["reason"],
        "from": isoformat(row["started_at"]),
        "to": isoformat(row["finished_at"]),
        "read_since": read_at is not None and read_at > row["finished_at"],
    }
