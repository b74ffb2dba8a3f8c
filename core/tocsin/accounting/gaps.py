"""Search for gaps between the intervals that were read, as a pure function.

In a feed, the time between an interval and the intervals that were read before it must lie in some
interval, no matter when that interval was read. Backfills do not create gaps. For a file, the
ledger stores only the name, and successive files can have the same name. An interval must therefore
start at the first byte or where another interval of the same stream ended, under any name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from tocsin.accounting.intervals import Interval
from tocsin.incidents import BYTES

_NOTHING = -1
"""The ID of the empty interval before the first byte of a file."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A part of a source that was not read, from `start` to the start of `before`."""

    start: int
    before: Interval
    """The interval that follows the gap."""


@dataclass(slots=True)
class _Series:
    """Intervals without gaps between them, and their common end."""

    intervals: list[Interval] = field(default_factory=list)
    end: int = 0

    def add(self, interval: Interval) -> None:
        self.intervals.append(interval)
        self.end = max(self.end, interval.end)

    def is_continued_by(self, interval: Interval) -> bool:
        """Whether the interval starts where one of these ends; if not, it is another file's."""
        return any(known.end == interval.start for known in self.intervals)

    def gaps(self) -> Iterator[Gap]:
        """Yield the gap before each interval that was not the earliest one when it was read."""
        ordered = sorted(self.intervals, key=attrgetter("start", "id"))
        end, oldest = ordered[0].end, None
        for interval in ordered:
            is_late = not interval.past and oldest is not None and interval.id > oldest
            if is_late and interval.start > end:
                yield Gap(end, interval)
            end = max(end, interval.end)
            if not interval.past:
                oldest = interval.id if oldest is None else min(oldest, interval.id)


def find_gaps(intervals: Iterable[Interval], reported_ids: Container[int]) -> list[Gap]:
    """Return the gaps in one stream that come before the intervals with `reported_ids`.

    The other intervals can close gaps, but gaps before them are not reported.
    """
    ordered = sorted(intervals, key=attrgetter("id"))
    files = [interval for interval in ordered if interval.unit == BYTES]
    feeds = [interval for interval in ordered if interval.unit != BYTES]
    runs = [*_group_feeds(feeds), *_group_files(files, reported_ids)]
    return [gap for run in runs for gap in run.gaps() if gap.before.id in reported_ids]


def _group_feeds(intervals: Iterable[Interval]) -> Iterable[_Series]:
    runs: dict[str, _Series] = defaultdict(_Series)
    for interval in intervals:
        runs[interval.source].add(interval)
    return runs.values()


def _group_files(intervals: Sequence[Interval], reported_ids: Container[int]) -> list[_Series]:
    """Separate the successive files with the same name, in the order of their reads."""
    runs: list[_Series] = []
    latest: dict[str, _Series] = {}
    ends = {0}
    for place, interval in enumerate(intervals):
        is_known = interval.id not in reported_ids or interval.start in ends
        run = latest.get(interval.source)
        if run is None or not run.is_continued_by(interval):
            if is_known or _may_continue(intervals[:place], interval):
                run = _Series()
            elif run is None:
                run = _Series([replace(interval, id=_NOTHING, start=0, end=0)])
        if run is not latest.get(interval.source):
            latest[interval.source] = run
            runs.append(run)
        run.add(interval)
        ends.add(interval.end)
    return runs


def _may_continue(earlier: Iterable[Interval], interval: Interval) -> bool:
    """Whether another interval that was still growing may have ended where this one starts."""
    return any(
        other.start <= interval.start <= other.end and other.ended > interval.began
        for other in earlier
    )
