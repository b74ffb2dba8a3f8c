"""Cursor over the alerts of several detectors, by start time.

The API pages by offset and returns nothing beyond 10,000 rows. For a detector with several
monitors, some versions query each monitor for a page and concatenate the pages: rows have no
order, a page may be larger than requested, and there is no last row to continue from. The start
time of an alert never changes, so offsets are stable; where there are too many rows, the cursor
requests a shorter interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from tocsin import Broken, Window

MAX_ROWS = 10_000
"""What `index.max_result_window` lets be paged through."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_milliseconds(moment: datetime) -> int:
    """Return the millisecond in which a time lies, counted from 1970."""
    return (moment - _EPOCH) // _MILLISECOND


@dataclass(frozen=True, slots=True)
class DetectorCursor:
    """What to ask next: rows of the first of some detectors from `index` on."""

    detectors: tuple[str, ...]
    start: int
    end: int
    """The part of the time that is asked for; both ends are in it, as the API has it."""
    first: int
    last: int
    """All of the time."""
    index: int = 0
    total: int = 0
    """How many rows the part had when it was last asked for."""
    passed_over: bool = False
    """Whether some of the time could not be listed."""

    @classmethod
    def beginning(cls, detectors: Sequence[str], window: Window) -> Self:
        """Return the first step through what began in a window."""
        first, last = to_milliseconds(window.start), to_milliseconds(window.end) - 1
        return cls(tuple(detectors), first, last, first, last)

    @classmethod
    def of_moment(cls, detector: str, moment: int) -> Self:
        """Return the first step through what began at one millisecond."""
        return cls((detector,), moment, moment, moment, moment)

    @property
    def query(self) -> dict[str, Any]:
        """What the API is asked with, beside how many rows.

        Times are whole milliseconds: for what it cannot read as such, the API takes now, without a
        word (RestGetAlertsAction), and answers an empty list.
        """
        return {
            "detector_id": self.detectors[0],
            "startTime": int(self.start),
            "endTime": int(self.end),
            "startIndex": self.index,
            "sortString": "start_time",
            "sortOrder": "asc",
        }

    def is_too_large(self, total: int) -> bool:
        """Return whether there are more rows than can be paged through, and less can be asked."""
        return total >= MAX_ROWS and self.index == 0 and self.start < self.end

    def halved(self) -> DetectorCursor:
        """Return the step that asks for half of the time."""
        return replace(self, end=(self.start + self.end) // 2, index=0, total=0)

    @property
    def span(self) -> timedelta:
        """How much time it asks for."""
        return (self.end - self.start) * _MILLISECOND

    def passing_over(self) -> DetectorCursor:
        """Return the step from which reading goes on behind its part, without rows of it."""
        return replace(self, index=0, total=0, passed_over=True)

    def probe(self) -> DetectorCursor:
        """Return a step that asks for hardly anything."""
        return replace(self, start=self.last, end=self.last, index=0, total=0)

    def following(self, found: int, total: int, size: int) -> DetectorCursor | None:
        """Return the next step, None at the end; Broken where rows have gone missing."""
        if total < self.total or (total and not found and not self.index):
            raise Broken(f"{found} of {total} alerts were answered, where there were {self.total}")
        if found and self.index + found < total:
            return replace(self, index=self.index + min(found, size), total=total)
        if self.end < self.last:
            return replace(self, start=self.end + 1, end=self.last, index=0, total=0)
        if len(self.detectors) > 1:
            whole = replace(self, start=self.first, end=self.last, index=0, total=0)
            return replace(whole, detectors=self.detectors[1:])
        return None

    def encode(self) -> list[Any]:
        """Return the token that `decode` turns back into this."""
        times = self.start, self.end, self.first, self.last
        return [list(self.detectors), *times, self.index, self.total, self.passed_over]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the step that `encode` made the token of."""
        detectors, *rest = token
        return cls(tuple(detectors), *rest)
