"""Intervals of a source, and the period of an account."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

LONGEST_PERIOD = timedelta(days=31)
"""The longest period of one report, which bounds its cost."""
MAX_LISTED = 1_000
"""The number of items listed of each kind, the oldest first."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of one source, from `start` up to, not including, `end`."""

    id: int
    source: str
    unit: str
    start: int
    end: int
    began: datetime
    """The time of its first read."""
    ended: datetime
    """The time of its last read."""
    past: bool = False
    """Whether a backfill read it: backfills close gaps and create none."""


@dataclass(frozen=True, slots=True)
class Period:
    """After `since`, up to and including `until`, so that adjacent periods do not overlap."""

    since: datetime
    until: datetime

    def __contains__(self, moment: datetime) -> bool:
        """Return whether a time is in the period."""
        return self.since < moment <= self.until
