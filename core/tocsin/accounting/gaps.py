"""Unread gaps between the intervals that were read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter

BYTES = "bytes"
_NOTHING = -1
"""The id of what was read of a file before its first byte."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A stretch of one source that is accounted for, from `start` up to, not including, `end`."""

    id: int
    source: str
    unit: str
    start: int
    end: int
    began: datetime
    """When it was begun to be read."""
    ended: datetime
    """When the last was read that it holds."""
    past: bool = False
    """Whether a backfill read it: it fills holes and makes none."""


@dataclass(frozen=True, slots=True)
class Gap:
    """What was not read of a source, from `start` up to where the stretch `before` begins."""

    start: int
    before: Interval
    """The stretch before which it lies."""


@dataclass(slots=True)
class _Series:
    """Stretches that have to hang together, and how far they reach."""

    stretches: list[Interval] = field(default_factory=list)
    reach: int = 0

    def add(self, stretch: Interval) -> None:
        self.stretches.append(stretch)
        self.reach = max(self.reach, stretch.end)

    def leads_on_to(self, stretch: Interval) -> bool:
        """Whether it begins where one of these ends; else it is rather of another content."""
        return any(it.end == stretch.start for it in self.stretches)

    def holes(self) -> Iterator[Gap]:
        """Yield what lies before each stretch, unless it was the earliest when it was read."""
        ordered = sorted(self.stretches, key=attrgetter("start", "id"))
        reach, oldest = ordered[0].end, None
        for stretch in ordered:
            is_late = not stretch.past and oldest is not None and stretch.id > oldest
            if is_late and stretch.start > reach:
                yield Gap(reach, stretch)
            reach = max(reach, stretch.end)
            if not stretch.past:
                oldest = stretch.id if oldest is None else min(oldest, stretch.id)


def find_gaps(stretches: Iterable[Interval], judged: Container[int]) -> list[Gap]:
    """Return the holes before those stretches of one stream whose ids are `judged`.

    The other stretches only explain: what lies before them is not asked for.
    """
    ordered = sorted(stretches, key=attrgetter("id"))
    files = [stretch for stretch in ordered if stretch.unit == BYTES]
    feeds = [stretch for stretch in ordered if stretch.unit != BYTES]
    runs = [*_group_feeds(feeds), *_group_files(files, judged)]
    return [hole for run in runs for hole in run.holes() if hole.before.id in judged]


def _group_feeds(stretches: Iterable[Interval]) -> Iterable[_Series]:
    runs: dict[str, _Series] = defaultdict(_Series)
    for stretch in stretches:
        runs[stretch.source].add(stretch)
    return runs.values()


def _group_files(stretches: Sequence[Interval], judged: Container[int]) -> list[_Series]:
    """Tell apart the contents that had one name, in the order in which they were read."""
    runs: list[_Series] = []
    latest: dict[str, _Series] = {}
    ends = {0}
    for place, stretch in enumerate(stretches):
        is_known = stretch.id not in judged or stretch.start in ends
        run = latest.get(stretch.source)
        if run is None or not run.leads_on_to(stretch):
            if is_known or _may_continue(stretches[:place], stretch):
                run = _Series()
            elif run is None:
                run = _Series([replace(stretch, id=_NOTHING, start=0, end=0)])
        if run is not latest.get(stretch.source):
            latest[stretch.source] = run
            runs.append(run)
        run.add(stretch)
        ends.add(stretch.end)
    return runs


def _may_continue(earlier: Iterable[Interval], stretch: Interval) -> bool:
    """Whether one that was still growing when this one began may have ended there at that time."""
    return any(
        other.start <= stretch.start <= other.end and other.ended > stretch.began
        for other in earlier
    )
