"""What was read in a period, what was not, and whether that has a reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping

from tocsin.accounting.holes import BYTES, Hole, Stretch, find_holes
from tocsin.accounting.period import Period
from tocsin.accounting.silence import SILENCE, find_silent, last_reads
from tocsin.accounting.stretches import (
    ending_at,
    is_accounted,
    key_of,
    latest_before,
    overlapping,
    point,
    rows_of_time,
    stretches_of,
)
from tocsin.clock import isoformat
from tocsin.incidents.coverage.gaps import still_lost
from tocsin.incidents.coverage.ledger import LOST, PASSED_OVER, ROW_SPAN
from tocsin.incidents.coverage.positions import StreamKey

_SOURCE = ("provider", "stream", "source", "unit")
_COUNTED = ("records", "new", "changed", "rejected")


@dataclass(frozen=True, slots=True)
class Reading:
    """The account of what was read; each item as it is shown."""

    coverage: list[dict[str, Any]]
    """What was read, by source."""
    holes: list[dict[str, Any]]
    lost: list[dict[str, Any]]
    """What was given up and not read since, with the reason."""
    passed_over: list[dict[str, Any]]
    """What was not meant to be read, with the reason."""
    failures: list[dict[str, Any]]
    """When a stream could not be read, and whether it has been since."""
    silent: list[dict[str, Any]]
    """Streams that should have been read and were not, without a failure that says why."""

    @property
    def quarantined(self) -> int:
        """How many records could not be understood and were kept aside."""
        return sum(source["rejected"] for source in self.coverage)


def account_for_reading(connection: Connection, period: Period) -> Reading:
    """Return the account of what was read in the period."""
    # A row holds what was read within ROW_SPAN, so these are all that grew while one of them did
    around = rows_of_time(connection, period.since - ROW_SPAN, period.until + ROW_SPAN)
    rows = [row for row in around if row["finished_at"] in period]
    failures = [row for row in rows if not is_accounted(row)]
    recently = period.until - SILENCE
    lately = (row for row in around if row["finished_at"] > recently)
    failing = {key_of(row) for row in lately if not is_accounted(row)}
    passed_over = (row for row in rows if row["outcome"] == PASSED_OVER)
    read = last_reads(connection)
    return Reading(
        coverage=_sources(row for row in rows if is_accounted(row)),
        holes=_holes(connection, around, period),
        lost=_lost(connection, [row for row in rows if row["outcome"] == LOST]),
        passed_over=[_unread(row, row["start"], row["end"]) for row in passed_over],
        failures=[_failure(row, read.get(key_of(row))) for row in failures],
        silent=find_silent(connection, read, failing, period),
    )


def _sources(rows: Iterable[RowMapping]) -> list[dict[str, Any]]:
    by_source: dict[tuple[str, ...], list[RowMapping]] = defaultdict(list)
    for row in rows:
        by_source[tuple(row[name] for name in _SOURCE)].append(row)
    return [_source(by_source[key]) for key in sorted(by_source)]


def _source(rows: Sequence[RowMapping]) -> dict[str, Any]:
    unit = rows[0]["unit"]
    return {
        "provider": rows[0]["provider"],
        "stream": rows[0]["stream"],
        "source": rows[0]["source"],
        "from": point(min(row["start"] for row in rows), unit),
        "to": point(max(row["end"] for row in rows), unit),
        "stretches": len(rows),
        **{name: sum(row[name] for row in rows) for name in _COUNTED},
        "read_at": isoformat(max(row["finished_at"] for row in rows)),
    }


def _holes(
    connection: Connection, rows: Iterable[RowMapping], period: Period
) -> list[dict[str, Any]]:
    by_stream: dict[StreamKey, list[RowMapping]] = defaultdict(list)
    for row in rows:
        by_stream[key_of(row)].append(row)
    return [
        _hole(key, hole)
        for key, its_rows in by_stream.items()
        for hole in _holes_of(connection, key, stretches_of(its_rows), period)
    ]


def _holes_of(
    connection: Connection, key: StreamKey, around: Sequence[Stretch], period: Period
) -> list[Hole]:
    """Return the holes of one stream; the ledger is asked further only where it seems to have one.

    What was read later, or long before, may explain what the period alone does not.
    """
    judged = {stretch.id for stretch in around if stretch.ended in period}
    known = {stretch.id: stretch for stretch in around}
    for first in {stretch.source: stretch for stretch in reversed(around)}.values():
        known |= _by_id(latest_before(connection, key, first))
    suspected = find_holes(known.values(), judged)
    if not suspected:
        return []
    known |= _by_id(_evidence(connection, key, suspected))
    return find_holes(known.values(), judged)


def _evidence(connection: Connection, key: StreamKey, holes: Iterable[Hole]) -> list[Stretch]:
    ends = sorted({hole.before.start for hole in holes if hole.before.unit == BYTES})
    found = ending_at(connection, key, ends)
    of_feeds: dict[str, list[Hole]] = defaultdict(list)
    for hole in holes:
        if hole.before.unit != BYTES:
            of_feeds[hole.before.source].append(hole)
    for source, its_holes in of_feeds.items():
        start = min(hole.start for hole in its_holes)
        end = max(hole.before.start for hole in its_holes)
        found += overlapping(connection, key, source, start, end)
    return found


def _by_id(stretches: Iterable[Stretch]) -> dict[int, Stretch]:
    return {stretch.id: stretch for stretch in stretches}


def _hole(key: StreamKey, hole: Hole) -> dict[str, Any]:
    unit = hole.before.unit
    return {
        "provider": key.provider,
        "stream": key.stream,
        "source": hole.before.source,
        "from": point(hole.start, unit),
        "to": point(hole.before.start, unit),
        "found_at": isoformat(hole.before.began),
    }


def _lost(connection: Connection, rows: Sequence[RowMapping]) -> list[dict[str, Any]]:
    """Return what of the stretches that were lost has not been read since, the oldest first."""
    files = [(row, (row["start"], row["end"])) for row in rows if row["unit"] == BYTES]
    feeds = still_lost(connection, (row for row in rows if row["unit"] != BYTES))
    lost = sorted([*files, *feeds], key=lambda it: it[0]["id"])
    return [_unread(row, *span) for row, span in lost]


def _unread(row: RowMapping, start: int, end: int) -> dict[str, Any]:
    return {
        "provider": row["provider"],
        "stream": row["stream"],
        "source": row["source"],
        "from": point(start, row["unit"]),
        "to": point(end, row["unit"]),
        "reason": row["reason"],
        "found_at": isoformat(row["started_at"]),
    }


def _failure(row: RowMapping, read_at: datetime | None) -> dict[str, Any]:
    return {
        "provider": row["provider"],
        "stream": row["stream"],
        "outcome": row["outcome"],
        "reason": row["reason"],
        "from": isoformat(row["started_at"]),
        "to": isoformat(row["finished_at"]),
        "read_since": read_at is not None and read_at > row["finished_at"],
    }
