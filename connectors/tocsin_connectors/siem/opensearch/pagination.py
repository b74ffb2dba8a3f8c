"""Cursor over the alerts of several detectors, by start time.

The API pages by offset and does not return rows after the first 10,000. For a detector with several
monitors, some versions request a page from each monitor and concatenate the pages. The rows then
have no order, a page may be larger than requested, and there is no last row to continue from. An
alert's start time never changes, so offsets are stable. If there are too many rows, the cursor
requests a shorter interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from tocsin import Broken, Window

MAX_ROWS = 10_000
"""Default of `index.max_result_window`."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def to_milliseconds(moment: datetime) -> int:
    """Return whole milliseconds since 1970, rounded down."""
    return (moment - _EPOCH) // _MILLISECOND


@dataclass(frozen=True, slots=True)
class DetectorCursor:
    """Request for rows of the first of several detectors from `index` on."""

    detectors: tuple[str, ...]
    start: int
    end: int
    """Requested part of the interval, including both ends, as in the API."""
    first: int
    last: int
    """Full interval."""
    index: int = 0
    total: int = 0
    """Number of rows of the part in the last response."""
    passed_over: bool = False
    """Whether a part of the interval could not be listed."""

    @classmethod
    def beginning(cls, detectors: Sequence[str], window: Window) -> Self:
        """Return the first cursor for alerts that began in a window."""
        first, last = to_milliseconds(window.start), to_milliseconds(window.end) - 1
        return cls(tuple(detectors), first, last, first, last)

    @classmethod
    def of_moment(cls, detector: str, moment: int) -> Self:
        """Return the first cursor for alerts that began at one millisecond."""
        return cls((detector,), moment, moment, moment, moment)

    @property
    def query(self) -> dict[str, Any]:
        """Query parameters, except the page size.

        Times are whole milliseconds: for any other value, the API silently uses the current time
        (RestGetAlertsAction) and returns an empty list.
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
        """Return whether there are more rows than can be paged through in a divisible interval."""
        return total >= MAX_ROWS and self.index == 0 and self.start < self.end

    def halved(self) -> DetectorCursor:
        """Return the cursor for the first half of the interval."""
        return replace(self, end=(self.start + self.end) // 2, index=0, total=0)

    @property
    def span(self) -> timedelta:
        """Length of the requested interval."""
        return (self.end - self.start) * _MILLISECOND

    def skip_interval(self) -> DetectorCursor:
        """Return the cursor after its part, without rows of it."""
        return replace(self, index=0, total=0, passed_over=True)

    def probe(self) -> DetectorCursor:
        """Return a cursor for a minimal interval."""
        return replace(self, start=self.last, end=self.last, index=0, total=0)

    def following(self, found: int, total: int, size: int) -> DetectorCursor | None:
        """Return the next cursor, or None at the end. Raises `Broken` if rows disappeared."""
        if total < self.total or (total and not found and not self.index):
            raise Broken(
                f"the list has {found} of {total} alerts; previously, there were {self.total}"
            )
        if found and self.index + found < total:
            return replace(self, index=self.index + min(found, size), total=total)
        if self.end < self.last:
            return replace(self, start=self.end + 1, end=self.last, index=0, total=0)
        if len(self.detectors) > 1:
            whole = replace(self, start=self.first, end=self.last, index=0, total=0)
            return replace(whole, detectors=self.detectors[1:])
        return None

    def encode(self) -> list[Any]:
        """Return the page token; the inverse of `decode`."""
        times = self.start, self.end, self.first, self.last
        return [list(self.detectors), *times, self.index, self.total, self.passed_over]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the cursor of a page token; the inverse of `encode`."""
        detectors, *rest = token
        return cls(tuple(detectors), *rest)
