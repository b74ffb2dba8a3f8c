"""The time that an account is of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

LONGEST_PERIOD = timedelta(days=31)
"""More is proved a part at a time, so that what an account costs has a bound."""
MAX_LISTED = 1_000
"""So many of a kind are listed, the oldest first."""


@dataclass(frozen=True, slots=True)
class Period:
    """After `since`, up to and including `until`, so that periods that follow share no moment."""

    since: datetime
    until: datetime

    def __contains__(self, moment: datetime) -> bool:
        """Return whether the moment lies in the period."""
        return self.since < moment <= self.until
