"""Chart of incidents by hour, as stacked bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tocsin.model import Severity
from tocsin.reports import format_time

WIDTH, HEIGHT = 1_000, 120
"""Size of the chart in units."""
_GAP = 4
_LEAST = 2  # lower segments would be invisible


@dataclass(frozen=True, slots=True)
class TrendSegment:
    """The incidents of one severity in an hour."""

    severity: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class TrendBar:
    """The incidents of an hour."""

    since: str
    until: str
    """Start and end of the hour, in UTC."""
    words: str
    x: float
    width: float
    pieces: tuple[TrendSegment, ...]


@dataclass(frozen=True, slots=True)
class TrendChart:
    """Incidents by hour."""

    bars: tuple[TrendBar, ...]
    total: int
    highest: int
    """Number of incidents in the busiest hour, to which the bars are scaled."""


def draw_trend(hours: Sequence[Mapping[str, Any]]) -> TrendChart:
    """Return a bar for each hour, the earliest first."""
    totals = [sum(each["counts"].values()) for each in hours]
    highest = max(totals, default=0)
    width = WIDTH / max(1, len(hours))
    bars = (
        _draw_bar(each, place * width, width - _GAP, HEIGHT / max(1, highest))
        for place, each in enumerate(hours)
    )
    return TrendChart(tuple(bars), sum(totals), highest)


def _draw_bar(hour: Mapping[str, Any], x: float, width: float, unit: float) -> TrendBar:
    start = datetime.fromisoformat(hour["start"])
    counts = {severity: hour["counts"].get(severity, 0) for severity in reversed(Severity)}
    parts = [f"{count} {severity}" for severity, count in counts.items() if count]
    words = f"{format_time(start)}: {', '.join(parts) or 'no incidents'}"
    end = f"{start + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    pieces = tuple(_stack(counts, unit))
    return TrendBar(f"{start:%Y-%m-%dT%H:%M:%SZ}", end, words, round(x, 1), round(width, 1), pieces)


def _stack(counts: Mapping[Severity, int], unit: float) -> Iterator[TrendSegment]:
    """Yield the segments of a bar from the bottom up, the most severe first."""
    top = float(HEIGHT)
    for severity, count in counts.items():
        if count:
            height = max(_LEAST, round(count * unit, 1))
            top -= height
            yield TrendSegment(severity.value, round(max(0, top), 1), height)
