"""What of the time that was lost has not been read since."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, select

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


@dataclass(frozen=True, slots=True)
class Loss:
    """A stretch of time that was lost and not read since."""

    window: Window
    lost_at: datetime


def losses(connection: Connection, key: StreamKey, since: datetime) -> list[Loss]:
    """Return what of a stream was lost after `since` and not read since, the oldest first."""
    lost = (
        connection.execute(_rows(key, LOST).where(coverage.c.finished_at >= since)).mappings().all()
    )
    return [
        Loss(Window(_moment(start), _moment(end)), row["finished_at"])
        for row in lost
        for start, end in still_lost(connection, row)
    ]


def still_lost(connection: Connection, lost: RowMapping) -> list[Span]:
    """Return what of a stretch of time that was lost has not been read since, by start and end."""
    begin, end = lost["start"], lost["end"]
    key = StreamKey(lost["provider"], lost["stream"])
    read = _rows(key, READ).where(
        coverage.c.source == lost["source"],
        coverage.c.id > lost["id"],
        coverage.c.start < end,
        coverage.c.end > begin,
    )
    spans = [(row["start"], row["end"]) for row in connection.execute(read).mappings()]
    return subtract([(begin, end)], spans)


def _rows(key: StreamKey, outcome: str) -> Select[Any]:
    return (
        select(coverage)
        .where(
            coverage.c.provider == key.provider,
            coverage.c.stream == key.stream,
            coverage.c.unit == "time",
            coverage.c.outcome == outcome,
            coverage.c.end > coverage.c.start,
        )
        .order_by(coverage.c.id)
    )


def _moment(number: int) -> datetime:
    return EPOCH + number * _MICROSECOND
