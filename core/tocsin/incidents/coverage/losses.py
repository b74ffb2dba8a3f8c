"""Lost intervals that have not been read since."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any, TypeVar

from sqlalchemy import Connection, RowMapping, Select, literal_column, select

from tocsin.incidents.coverage.ledger import CoverageOutcome
from tocsin.model import Window
from tocsin.store.tables import EPOCH, coverage

T = TypeVar("T")
U = TypeVar("U")
Span = tuple[Any, Any]
"""Start and end, as numbers or as times."""
TaggedSpan = tuple[Any, Any, T]
"""Start, end, and an attached value."""
_START = itemgetter(0)
_MICROSECOND = timedelta(microseconds=1)
_c = coverage.c


def subtract_spans(spans: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    """Return the parts of the spans outside all others: ordered, disjoint, none empty."""
    taken = merge_spans(others)
    left: list[Span] = []
    for start, end in merge_spans(spans):
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


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the union of the spans: ordered, disjoint, without empty spans."""
    merged: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def iter_overlaps(
    spans: Iterable[TaggedSpan[T]], others: Iterable[TaggedSpan[U]]
) -> Iterator[tuple[T, list[U]]]:
    """Yield the value of each span, the earliest first, with the values of overlapping others."""
    coming = deque(sorted(others, key=_START))
    near: list[TaggedSpan[U]] = []
    for start, end, value in sorted(spans, key=_START):
        while coming and coming[0][0] < end:
            near.append(coming.popleft())
        near = [other for other in near if other[1] > start]
        yield value, [other[2] for other in near if other[0] < end]


@dataclass(frozen=True, slots=True)
class Loss:
    """An interval of time that was lost and not read since."""

    window: Window
    lost_at: datetime


def list_losses(
    connection: Connection, provider: str, streams: Sequence[str], since: datetime
) -> list[Loss]:
    """Return what was lost in these streams after `since` and not read later, by start."""
    lost = select(coverage).where(
        _c.provider == provider,
        _c.stream.in_(streams),
        # A literal, since the databases use a partial index only where its condition is literal
        literal_column("outcome") == literal_column(f"'{CoverageOutcome.LOST}'"),
        _c.unit == "time",
        _c.finished_at >= since,
    )
    rows = connection.execute(lost).mappings().all()
    return [
        Loss(Window(_to_datetime(start), _to_datetime(end)), row["finished_at"])
        for row, (start, end) in iter_still_lost(connection, rows)
    ]


def iter_still_lost(
    connection: Connection, lost: Iterable[RowMapping]
) -> Iterator[tuple[RowMapping, Span]]:
    """Yield the spans of each lost row of time that were not read later."""
    by_source: dict[tuple[str, ...], list[RowMapping]] = defaultdict(list)
    for row in lost:
        by_source[row["provider"], row["stream"], row["source"]].append(row)
    for source, rows in by_source.items():
        reads = connection.execute(_select_read_since(source, rows)).mappings().all()
        for row, around in iter_overlaps(map(_tag_span, rows), map(_tag_span, reads)):
            later = [_get_span(read) for read in around if read["id"] > row["id"]]
            yield from ((row, span) for span in subtract_spans([_get_span(row)], later))


def _select_read_since(source: Sequence[str], lost: Sequence[RowMapping]) -> Select[Any]:
    provider, stream, name = source
    return select(_c.id, _c.start, _c.end).where(
        _c.provider == provider,
        _c.stream == stream,
        _c.source == name,
        _c.id > min(row["id"] for row in lost),
        _c.unit == "time",
        _c.outcome == CoverageOutcome.READ,
        _c.start < max(row["end"] for row in lost),
        _c.end > min(row["start"] for row in lost),
    )


def _get_span(row: RowMapping) -> Span:
    return row["start"], row["end"]


def _tag_span(row: RowMapping) -> TaggedSpan[RowMapping]:
    return row["start"], row["end"], row


def _to_datetime(number: int) -> datetime:
    return EPOCH + number * _MICROSECOND
