"""Coverage calendar: how much of each day of a stream was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tocsin.accounting import MAX_LISTED
from tocsin.web.console.coverage_bar import parse_moment, select_stream

WEEKS = 4
CELL, GAP = 26, 4
"""Size of a cell and the space between two, in units."""
_DAY = timedelta(days=1)
_SHADES = (timedelta(hours=1), timedelta(hours=6))
"""How much missing time gives a day the medium shade, and how much gives it the dark shade."""
_MISSING = ("gaps", "lost")
_Interval = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class CoverageDay:
    """One day (in UTC) of a stream."""

    x: int
    y: int
    kind: str
    """`read`, `unread` (also if unknown), or `missing-1` to `missing-3` by the missing time."""
    day: str
    words: str


@dataclass(frozen=True, slots=True)
class CoverageCalendar:
    """The latest weeks of a stream, with a row for each week that starts on Monday."""

    stream: str
    days: tuple[CoverageDay, ...]
    is_cut: bool
    """Whether days can have gaps beyond those that the proof lists."""
    width: int = 7 * (CELL + GAP)
    height: int = WEEKS * (CELL + GAP)

    @property
    def faulty(self) -> Sequence[CoverageDay]:
        """The days with missing intervals."""
        return [day for day in self.days if day.kind.startswith("missing")]


def build_calendars(
    proof: Mapping[str, Any], provider: Mapping[str, Any]
) -> list[CoverageCalendar]:
    """Return the calendar of each time-based stream of a provider; `proof` covers the weeks."""
    today = parse_moment(proof["until"]).astimezone(UTC).date()
    first = today - timedelta(days=today.weekday(), weeks=WEEKS - 1)
    begins = datetime(first.year, first.month, first.day, tzinfo=UTC)
    days = [begins + number * _DAY for number in range((today - first).days + 1)]
    is_cut = any(len(proof[kind]) >= MAX_LISTED for kind in _MISSING)
    return [
        CoverageCalendar(
            stream["name"],
            tuple(
                _build_day(number, begin, *known, is_cut=is_cut)
                for number, begin in enumerate(days)
            ),
            is_cut,
        )
        for stream in provider["streams"]
        if (known := _collect(proof, provider["name"], stream)) is not None
    ]


def _collect(
    proof: Mapping[str, Any], provider: str, stream: Mapping[str, Any]
) -> tuple[_Interval, list[_Interval]] | None:
    """Return the interval that was read and the missing intervals, None if not time-based."""
    if stream["covered_until"] is None:
        return None
    until, name = parse_moment(stream["covered_until"]), stream["name"]
    begins = (begin for begin, _ in _list_intervals(proof["coverage"], provider, name))
    missing = [
        interval for kind in _MISSING for interval in _list_intervals(proof[kind], provider, name)
    ]
    return (min(begins, default=until), until), missing


def _list_intervals(
    parts: Iterable[Mapping[str, Any]], provider: str, stream: str
) -> Iterator[_Interval]:
    for part in select_stream(parts, provider, stream):
        yield parse_moment(part["from"]), parse_moment(part["to"])


def _build_day(
    number: int, begin: datetime, read: _Interval, missing: Iterable[_Interval], *, is_cut: bool
) -> CoverageDay:
    day = (begin, begin + _DAY)
    lacking = min(sum((_overlap(day, each) for each in missing), timedelta()), _DAY)
    kind, words = ("unread", "not known") if is_cut else ("read", "complete")
    if lacking:
        kind = f"missing-{1 + sum(lacking >= shade for shade in _SHADES)}"
        least = "at least " if is_cut and lacking < _DAY else ""
        words = f"{least}{max(1, round(lacking / timedelta(minutes=1)))} min missing"
    elif not _overlap(day, read):
        kind, words = "unread", "not read"
    week, weekday = divmod(number, 7)
    shown = f"{begin:%Y-%m-%d}"
    place = weekday * (CELL + GAP), week * (CELL + GAP)
    return CoverageDay(*place, kind, shown, f"{shown}: {words}")


def _overlap(one: _Interval, other: _Interval) -> timedelta:
    return max(min(one[1], other[1]) - max(one[0], other[0]), timedelta())
