"""Stalled streams: overdue reads without a recorded failure."""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, select

from tocsin.accounting.gaps import BYTES
from tocsin.accounting.intervals import Period
from tocsin.clock import isoformat
from tocsin.incidents import CoverageOutcome, StreamKey
from tocsin.store.tables import coverage, providers, stream_positions

STALL_TOLERANCE = timedelta(hours=1)
"""A feed that tells what time it covers does so at each of its reads; it may be late by so much."""
MAX_MISSED_POLLS = 3
"""A feed that is read seldom may be late by so many of its reads."""
REMOVED_PROVIDER_WINDOW = timedelta(days=7)
"""A provider that was removed is asked after for so long."""


def load_last_reads(connection: Connection) -> dict[StreamKey, datetime]:
    """Return when something was last read of each stream that there ever was."""
    table = stream_positions.c
    rows = connection.execute(select(table.provider, table.stream, table.updated_at))
    return {StreamKey(row.provider, row.stream): row.updated_at for row in rows}


def find_stalled_streams(
    connection: Connection,
    read: Mapping[StreamKey, datetime],
    excused: Container[StreamKey],
    period: Period,
) -> list[dict[str, Any]]:
    """Return the streams that were last `read` long ago, except the `excused`, as they are shown.

    A file to which nothing is added is not read, so its silence says nothing: only streams that
    cover time are asked after.
    """
    earliest = min(period.since, period.until - REMOVED_PROVIDER_WINDOW)
    patience = _load_tolerances(connection)
    return [
        {"provider": key.provider, "stream": key.stream, "read_at": isoformat(read_at)}
        for key, read_at in sorted(read.items(), key=lambda item: item[1])
        if earliest < read_at < period.until - patience.get(key.provider, STALL_TOLERANCE)
        and key not in excused
        and _covered_time(connection, key, read_at)
    ]


def _load_tolerances(connection: Connection) -> Mapping[str, timedelta]:
    """Return how late each provider may be, by how often it is read."""
    rows = connection.execute(select(providers.c.name, providers.c.poll_ms))
    return {
        name: max(STALL_TOLERANCE, MAX_MISSED_POLLS * timedelta(milliseconds=poll))
        for name, poll in rows
    }


def _covered_time(connection: Connection, key: StreamKey, read_at: datetime) -> bool:
    covered = select(coverage.c.id).where(
        coverage.c.finished_at == read_at,
        coverage.c.provider == key.provider,
        coverage.c.stream == key.stream,
        coverage.c.outcome == CoverageOutcome.READ,
        coverage.c.unit != BYTES,
        coverage.c.end > coverage.c.start,
    )
    return connection.execute(covered.limit(1)).first() is not None
