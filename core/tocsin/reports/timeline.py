"""Layout of the timeline drawing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import ceil, floor, log2

from tocsin.clock import isoformat
from tocsin.model import Severity, TimelineEntry
from tocsin.reports.text_format import clean_line, format_count, format_time, truncate

WIDTH = 960
_LEFT, _RIGHT = 150, 30
_TOP, _LANE, _AXIS = 40, 34, 46
_GAP = 84  # pixels between two segments
_LANES = 6
_CELL = 12  # pixels that share a dot
_TICK = 110  # minimum pixels for the label of a tick
_BREAKS = 3
_LONG = 0.75  # share of the remaining time; a gap of that length is cut out
_STEPS = [
    timedelta(seconds=seconds)
    for seconds in (1, 5, 15, 30, 60, 300, 900, 1_800, 3_600, 10_800, 21_600, 43_200)
] + [timedelta(days=days) for days in (1, 2, 7, 14, 30, 90, 365)]
_WORST_FIRST = sorted(Severity, key=lambda severity: -severity.rank)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TimelineDot:
    """One or more moments."""

    x: float
    y: float
    radius: float
    severity: str
    """The worst severity; empty if none has one."""
    label: str


@dataclass(frozen=True, slots=True)
class TimelineLabel:
    """A label at a position."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class TimelineTick:
    """A labelled time on the axis, in UTC."""

    x: float
    at: str
    """The time in ISO 8601, from which a script derives the labels of another time zone."""
    text: str
    """The time of day."""
    day: str
    """The day; empty if the tick before it in its segment has the same."""
    begins: bool
    """Whether it is the first of a segment."""


@dataclass(frozen=True, slots=True)
class TimelineDrawing:
    """A complete drawing."""

    width: int
    height: int
    top: int
    legend: tuple[TimelineLabel, ...]
    lanes: tuple[TimelineLabel, ...]
    segments: tuple[tuple[float, float], ...]
    bottom: int
    """Upper edge of the axis."""
    ticks: tuple[TimelineTick, ...]
    gaps: tuple[TimelineLabel, ...]
    dots: tuple[TimelineDot, ...]
    description: str


@dataclass(frozen=True, slots=True)
class _TimelineSegment:
    start: datetime
    end: datetime
    left: float
    right: float

    def x(self, moment: datetime) -> float:
        """Return the horizontal position of a moment."""
        if self.start == self.end:
            return (self.left + self.right) / 2
        share = min((moment - self.start) / (self.end - self.start), 1)
        return self.left + share * (self.right - self.left)


def draw_timeline(moments: Sequence[TimelineEntry]) -> TimelineDrawing | None:
    """Return the drawing; None without moments."""
    if not moments:
        return None
    segments = _segments(sorted({_second(moment.at) for moment in moments}))
    lanes = _lanes(moments)
    bottom = _TOP + _LANE * len(lanes)
    return TimelineDrawing(
        width=WIDTH,
        height=bottom + _AXIS,
        top=_TOP,
        legend=tuple(
            TimelineLabel(_LEFT + 90 * n, 14, word) for n, word in enumerate(_WORST_FIRST)
        ),
        lanes=tuple(
            TimelineLabel(0, _y(n), truncate(clean_line(name), 21)) for n, name in enumerate(lanes)
        ),
        segments=tuple((segment.left, segment.right) for segment in segments),
        bottom=bottom,
        ticks=tuple(tick for segment in segments for tick in _label_ticks(segment)),
        gaps=tuple(_gaps(segments, bottom - 4)),
        dots=tuple(_dots(moments, segments, lanes)),
        description=_description(moments, segments),
    )


def _second(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(microsecond=0)


def _segments(times: Sequence[datetime]) -> list[_TimelineSegment]:
    """Cut the time at its longest gaps, and divide the width by the number of moments."""
    pieces = _pieces(times)
    room = WIDTH - _LEFT - _RIGHT - _GAP * (len(pieces) - 1)
    weights = [1 + log2(len(piece)) for piece in pieces]
    segments, left = [], float(_LEFT)
    for piece, weight in zip(pieces, weights, strict=True):
        right = left + room * weight / sum(weights)
        segments.append(_TimelineSegment(piece[0], piece[-1], left, right))
        left = right + _GAP
    return segments


def _pieces(times: Sequence[datetime]) -> list[Sequence[datetime]]:
    remaining = times[-1] - times[0]
    cuts = []
    gaps = [(later - earlier, n) for n, (earlier, later) in enumerate(pairwise(times), 1)]
    for gap, position in sorted(gaps, key=lambda each: (-each[0], each[1]))[:_BREAKS]:
        if remaining == gap or gap / remaining < _LONG:
            break
        cuts.append(position)
        remaining -= gap
    edges = [0, *sorted(cuts), len(times)]
    return [times[start:end] for start, end in pairwise(edges)]


def _ticks(segment: _TimelineSegment) -> Iterator[datetime]:
    """Yield round times for ticks; for a segment without duration, its only time."""
    span = segment.end - segment.start
    most = max(int((segment.right - segment.left) / _TICK), 1)
    if not span:
        yield segment.start
        return
    step = next((step for step in _STEPS if span / step <= most), span / most)
    first = ceil((segment.start - _EPOCH) / step)
    count = floor((segment.end - _EPOCH) / step) - first + 1
    if count < 1:
        yield segment.start
    yield from (_EPOCH + step * n for n in range(first, first + count))


def _time_of_day(moment: datetime) -> str:
    return f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"


def _label_ticks(segment: _TimelineSegment) -> Iterator[TimelineTick]:
    before = ""
    for at in _ticks(segment):
        day = at.date().isoformat()
        shown = "" if day == before else day
        yield TimelineTick(segment.x(at), isoformat(at), _time_of_day(at), shown, not before)
        before = day


def _gaps(segments: Sequence[_TimelineSegment], y: float) -> Iterator[TimelineLabel]:
    for earlier, later in pairwise(segments):
        yield TimelineLabel(
            (earlier.right + later.left) / 2, y, _duration(later.start - earlier.end)
        )


def _duration(length: timedelta) -> str:
    for unit, seconds in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if length.total_seconds() >= 2 * seconds:
            return format_count(round(length.total_seconds() / seconds), unit)
    return format_count(round(length.total_seconds()), "second")


def _lanes(moments: Sequence[TimelineEntry]) -> list[str]:
    names = list(dict.fromkeys(moment.source for moment in moments))
    return names if len(names) <= _LANES else [*names[: _LANES - 1], "others"]


def _y(lane: int) -> float:
    return _TOP + _LANE * (lane + 0.5)


def _dots(
    moments: Sequence[TimelineEntry], segments: Sequence[_TimelineSegment], lanes: Sequence[str]
) -> Iterator[TimelineDot]:
    order = {name: n for n, name in enumerate(lanes)}
    cells: dict[tuple[int, int], list[TimelineEntry]] = defaultdict(list)
    for moment in sorted(moments, key=lambda moment: moment.at):
        segment = next(each for each in reversed(segments) if each.start <= moment.at)
        lane = order.get(moment.source, len(lanes) - 1)
        cells[lane, round(segment.x(moment.at) / _CELL)].append(moment)
    for (lane, cell), shared in cells.items():
        radius = min(5 + log2(len(shared)), _CELL)
        yield TimelineDot(cell * _CELL, _y(lane), radius, _worst(shared), _label(shared))


def _worst(moments: Sequence[TimelineEntry]) -> str:
    severities = [moment.severity for moment in moments if moment.severity]
    return max(severities, key=lambda severity: severity.rank).value if severities else ""


def _label(moments: Sequence[TimelineEntry]) -> str:
    first = f"{format_time(moments[0].at)} {truncate(clean_line(moments[0].statement.text), 200)}"
    rest = len(moments) - 1
    return f"{first} And {rest:,} more until {format_time(moments[-1].at)}." if rest else first


def _description(moments: Sequence[TimelineEntry], segments: Sequence[_TimelineSegment]) -> str:
    return (
        f"{format_count(len(moments), 'entry', 'entries')} from {format_time(segments[0].start)}"
        f" to {format_time(segments[-1].end)}. See the table below for details."
    )
