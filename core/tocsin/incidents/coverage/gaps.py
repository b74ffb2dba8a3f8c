"""What of the time that was lost has not been read since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from tocsin.incidents.coverage.ledger import LOST, READ
from tocsin.incidents.coverage.positions import StreamKey
from tocsin.model import Window
from tocsin.store.tables import EPOCH, coverage

Span = tuple[int, int]
_MICROSECOND = timedelta(microseconds=1)


def subtract(spans: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    """Return what of the spans lies in none of the others: in order, apart, none empty."""
    taken = merge(others)
    left: list[Span] = []
    for start, end in merge(spans):
        place = start
        for other_start, other_end in taken:
            if other_end <= place or other_start >= end:
                continue
            if other_start > place:
                left.append((place, other_start))
            place = other_end
        if place < end:
            left.append((place, end))
    return left


def merge(spans: Iterable[Span]) -> list[Span]:
    """Return the same stretches in order, each as long as it gets; those of no length vanish."""
    merged: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def lost_windows(connection: Connection, key: StreamKey, since: datetime) -> list[Window]:
    """Return the stretches of time of a stream that were lost and not read since, the oldest first.

    Only what was lost after `since` is looked at.
    """
    lost = _spans(connection, key, LOST, since=since)
    if not lost:
        return []
    read = _spans(connection, key, READ, after=min(start for start, _ in lost))
    return [Window(_moment(start), _moment(end)) for start, end in subtract(lost, read)]


def _spans(
    connection: Connection,
    key: StreamKey,
    outcome: str,
    *,
    since: datetime | None = None,
    after: int | None = None,
) -> Sequence[Span]:
    rows = select(coverage.c.start, coverage.c.end).where(
        coverage.c.provider == key.provider,
        coverage.c.stream == key.stream,
        coverage.c.unit == "time",
        coverage.c.outcome == outcome,
        coverage.c.end > coverage.c.start,
    )
    if since is not None:
        rows = rows.where(coverage.c.finished_at >= since)
    if after is not None:
        rows = rows.where(coverage.c.end > after)
    return [(start, end) for start, end in connection.execute(rows)]


def _moment(number: int) -> datetime:
    return EPOCH + number * _MICROSECOND
