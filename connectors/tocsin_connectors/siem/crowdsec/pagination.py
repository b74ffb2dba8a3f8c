"""Cursor over alerts that the server lists newest first, without pages or tokens.

The Local API takes no lower bound for the creation time (`since` bounds the time of the first event
of a bucket, which may be hours or, for a replayed log, months earlier). It has `created_before`, as
an age, and `limit`. With a limit of 100 or more above the number of alerts, CrowdSec 1.4.6 stays
busy forever; no request comes near that, since each is at most 50 larger than what the previous one
returned. The filters do not help against blocklists, each update of which is one large alert:
`include_capi=false` also hides alerts without decisions and manual imports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from tocsin import Window

SECOND = timedelta(seconds=1)
MAX_GROWTH = 50
"""So much larger than the step before may one be."""
_FIRST_FRACTION = 20  # times smaller is the first step: it is made at every read, new alerts or not


@dataclass(frozen=True, slots=True)
class CrowdSecCursor:
    """What to ask for: the newest `size` alerts created before `until`."""

    until: datetime
    size: int

    @classmethod
    def first(cls, window: Window, limit: int) -> Self:
        """Return the step to begin a window with."""
        return cls(window.end, max(1, limit // _FIRST_FRACTION))

    def following(
        self, created: Sequence[datetime | None], window: Window, limit: int
    ) -> CrowdSecCursor | None:
        """Return the next step, given when what was found was created; None at the window's end.

        Where all that was found is of one moment, the next step takes more at once.
        """
        if len(created) < self.size:
            return None
        larger = self.size + min(self.size, MAX_GROWTH)
        oldest = min((moment for moment in created if moment), default=self.until)
        if oldest < window.start:
            return None
        if oldest < self.until - SECOND:  # moments are shown cut to the second
            return CrowdSecCursor(oldest + SECOND, min(larger, limit))
        return CrowdSecCursor(self.until, larger)

    def encode(self) -> list[Any]:
        """Return the token that `decode` turns back into this."""
        return [self.until.isoformat(), self.size]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the step that `encode` made the token of."""
        until, size = token
        return cls(datetime.fromisoformat(until), size)
