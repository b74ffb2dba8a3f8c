"""Intervals of a source, and the period that a report covers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

LONGEST_PERIOD = timedelta(days=31)
"""The longest period of a report; this limit bounds the cost of the report."""
MAX_LISTED = 1_000
"""The maximum number of items that a report lists of each kind, oldest first."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of one source, from `start` (inclusive) to `end` (exclusive)."""

    id: int
    source: str
    unit: str
    start: int
    end: int
    began: datetime
    """When the interval was first read."""
    ended: datetime
    """When the interval was last read."""
    past: bool = False
    """Whether a backfill read the interval; backfills close gaps but do not create them."""


@dataclass(frozen=True, slots=True)
class Period:
    """A period from `since` (exclusive) to `until` (inclusive); adjacent ones do not overlap."""

    since: datetime
    until: datetime

    def __contains__(self, moment: datetime) -> bool:
        """Return whether a time is in the period."""
        return self.since < moment <= self.until
