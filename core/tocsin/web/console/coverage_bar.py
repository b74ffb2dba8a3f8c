"""Coverage bars: read, missing and lost intervals of a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tocsin.reports import format_time

WIDTH = 1_000
"""Width of a bar in units, for any period."""
_LEAST = 3  # narrower segments would be invisible


@dataclass(frozen=True, slots=True)
class CoverageSegment:
    """A segment of a coverage bar."""

    kind: str
    """`read`, `gap` or `lost`."""
    begin: float
    width: float
    words: str


@dataclass(frozen=True, slots=True)
class CoverageBar:
    """Coverage of one stream."""

    provider: str
    stream: str
    pieces: tuple[CoverageSegment, ...]
    is_whole: bool
    """Whether there are no gaps."""


def build_coverage_bars(
    proof: Mapping[str, Any], providers: Iterable[Mapping[str, Any]]
) -> list[CoverageBar]:
    """Return a bar for each time-based stream."""
    return [
        strip
        for provider in providers
        for stream in provider["streams"]
        if (strip := _build_bar(proof, provider["name"], stream)) is not None
    ]


def _build_bar(
    proof: Mapping[str, Any], provider: str, stream: Mapping[str, Any]
) -> CoverageBar | None:
    if stream["covered_until"] is None:
        return None
    period = _BarScale(parse_moment(proof["since"]), parse_moment(proof["until"]))
    name = stream["name"]
    faults = [
        *period.pieces("gap", select_stream(proof["gaps"], provider, name)),
        *period.pieces("lost", select_stream(proof["lost"], provider, name)),
    ]
    begins = [
        parse_moment(interval["from"])
        for interval in select_stream(proof["coverage"], provider, name)
    ]
    until = parse_moment(stream["covered_until"])
    read = period.piece("read", min(begins, default=until), until, "")
    return CoverageBar(provider, name, (read, *faults), not faults)


def select_stream(
    parts: Iterable[Mapping[str, Any]], provider: str, stream: str
) -> Iterator[Mapping[str, Any]]:
    """Yield the time-based intervals of one stream."""
    for part in parts:
        if (part["provider"], part["stream"]) == (provider, stream) and _is_time(part["from"]):
            yield part


@dataclass(frozen=True, slots=True)
class _BarScale:
    since: datetime
    until: datetime

    def pieces(self, kind: str, parts: Iterable[Mapping[str, Any]]) -> Iterator[CoverageSegment]:
        for part in parts:
            begin, end = parse_moment(part["from"]), parse_moment(part["to"])
            title = (
                f"{kind}: {format_time(begin)} to {format_time(end)}. {part.get('reason') or ''}"
            )
            yield self.piece(kind, begin, end, title.strip())

    def piece(self, kind: str, begin: datetime, end: datetime, title: str) -> CoverageSegment:
        first, last = self._place(begin), self._place(end)
        return CoverageSegment(
            kind, first, max(last - first, 0 if kind == "read" else _LEAST), title
        )

    def _place(self, moment: datetime) -> float:
        part = (moment - self.since) / (self.until - self.since)
        return round(WIDTH * min(max(part, 0), 1), 1)


def _is_time(value: int | str) -> bool:
    return isinstance(value, str) and "T" in value


def parse_moment(value: datetime | str) -> datetime:
    """Return a time of the API."""
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)
