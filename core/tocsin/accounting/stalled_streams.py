"""Stalled streams: overdue reads without a recorded failure."""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, select

from tocsin.accounting.intervals import Period
from tocsin.clock import isoformat
from tocsin.incidents import BYTES, CoverageOutcome, StreamKey
from tocsin.store.tables import coverage, providers, stream_positions

STALL_TOLERANCE = timedelta(hours=1)
"""The delay after which a time-based stream counts as stalled."""
MAX_MISSED_POLLS = 3
"""The same for rarely polled streams, in polls."""
REMOVED_PROVIDER_WINDOW = timedelta(days=7)
"""The time for which the streams of a removed provider are reported."""


def load_last_reads(connection: Connection) -> dict[StreamKey, datetime]:
    """Return the time of the last read of every known stream."""
    table = stream_positions.c
    rows = connection.execute(select(table.provider, table.stream, table.updated_at))
    return {StreamKey(row.provider, row.stream): row.updated_at for row in rows}


def find_stalled_streams(
    connection: Connection,
    read: Mapping[StreamKey, datetime],
    excused: Container[StreamKey],
    period: Period,
) -> list[dict[str, Any]]:
    """Return the JSON of the streams whose last `read` is overdue, except the `excused` ones.

    A file that does not grow is not read, so only time-based streams can stall.
    """
    earliest = min(period.since, period.until - REMOVED_PROVIDER_WINDOW)
    patience = _load_tolerances(connection)
    return [
        {"provider": key.provider, "stream": key.stream, "read_at": isoformat(read_at)}
        for key, read_at in sorted(read.items(), key=lambda item: item[1])
        if earliest < read_at < period.until - patience.get(key.provider, STALL_TOLERANCE)
        and key not in excused
        and _is_time_based(connection, key, read_at)
    ]


def _load_tolerances(connection: Connection) -> Mapping[str, timedelta]:
    """Return the tolerated delay of each provider, by its poll interval."""
    rows = connection.execute(select(providers.c.name, providers.c.poll_ms))
    return {
        name: max(STALL_TOLERANCE, MAX_MISSED_POLLS * timedelta(milliseconds=poll))
        for name, poll in rows
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
