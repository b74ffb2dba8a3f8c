"""Stalled streams, whose reads are overdue although no failure is recorded."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, select

from tocsin.accounting.intervals import Period
from tocsin.clock import isoformat
from tocsin.incidents import BYTES, CoverageOutcome, StreamKey
from tocsin.store.tables import coverage, providers, stream_positions

STALL_TOLERANCE = timedelta(hours=1)
"""How long a read can be overdue before a time-based stream counts as stalled."""
MAX_MISSED_READS = 3
"""How many read intervals can pass before a rarely read stream counts as stalled."""
REMOVED_PROVIDER_WINDOW = timedelta(days=7)
"""How long reports contain the streams of a removed provider."""


def load_last_reads(connection: Connection) -> dict[StreamKey, datetime]:
    """Return when each known stream was last read."""
    table = stream_positions.c
    rows = connection.execute(select(table.provider, table.stream, table.updated_at))
    return {StreamKey(row.provider, row.stream): row.updated_at for row in rows}


def find_stalled_streams(
    connection: Connection,
    read: Mapping[StreamKey, datetime],
    excused: Container[StreamKey],
    period: Period,
) -> list[dict[str, Any]]:
    """Return, as JSON, the streams whose last `read` is too long ago, except `excused` ones.

    Only time-based streams can stall, because Tocsin does not read a file that does not grow.
    """
    earliest = min(period.since, period.until - REMOVED_PROVIDER_WINDOW)
    tolerances = _load_tolerances(connection, read)
    return [
        {"provider": key.provider, "stream": key.stream, "read_at": isoformat(read_at)}
        for key, read_at in sorted(read.items(), key=lambda item: item[1])
        if earliest < read_at < period.until - tolerances.get(key, STALL_TOLERANCE)
        and key not in excused
        and _is_time_based(connection, key, read_at)
    ]


def _load_tolerances(
    connection: Connection, streams: Iterable[StreamKey]
) -> Mapping[StreamKey, timedelta]:
    """Return how long each stream of a known provider can be overdue."""
    table = providers.c
    rows = connection.execute(select(table.name, table.poll_ms, table.stream_intervals_ms))
    known = {row.name: row for row in rows}
    intervals = {
        key: (row.stream_intervals_ms or {}).get(key.stream, row.poll_ms)
        for key in streams
        if (row := known.get(key.provider))
    }
    return {
        key: max(STALL_TOLERANCE, MAX_MISSED_READS * timedelta(milliseconds=interval))
        for key, interval in intervals.items()
    }


def _is_time_based(connection: Connection, key: StreamKey, read_at: datetime) -> bool:
    covered = select(coverage.c.id).where(
        coverage.c.finished_at == read_at,
        coverage.c.provider == key.provider,
        coverage.c.stream == key.stream,
        coverage.c.outcome == CoverageOutcome.READ,
        coverage.c.unit != BYTES,
        coverage.c.end > coverage.c.start,
    )
    return connection.execute(covered.limit(1)).first() is not None
