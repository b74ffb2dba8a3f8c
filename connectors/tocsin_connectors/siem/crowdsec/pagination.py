"""Cursor over alerts that the server lists newest first, without pages or tokens.

The Local API does not accept a lower bound for the creation time. Its `since` applies to the time
of the first event in a bucket, which may be hours earlier, or months for a replayed log. It accepts
`created_before`, as an age, and `limit`. If the limit exceeds the number of alerts by 100 or more,
CrowdSec 1.4.6 stays busy forever. No request comes near that, because its limit exceeds what the
previous request returned by at most 50. The filters do not help against blocklists, whose updates
are large alerts: `include_capi=false` also hides alerts without decisions and manual imports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self

from tocsin import Window

SECOND = timedelta(seconds=1)
MAX_GROWTH = 50
"""Maximum growth of the page size between two requests."""
_FIRST_FRACTION = 20  # the first page is smaller: it is requested at every read


@dataclass(frozen=True, slots=True)
class CrowdSecCursor:
    """Request for the newest `size` alerts created before `until`."""

    until: datetime
    size: int

    @classmethod
    def first(cls, window: Window, limit: int) -> Self:
        """Return the first cursor of a window."""
        return cls(window.end, max(1, limit // _FIRST_FRACTION))

    def following(
        self, created: Sequence[datetime | None], window: Window, limit: int
    ) -> CrowdSecCursor | None:
        """Return the next cursor, or None at the end of the window.

        `created` are the creation times on the page. If all are equal, the next page is larger.
        """
        if len(created) < self.size:
            return None
        larger = self.size + min(self.size, MAX_GROWTH)
        oldest = min((moment for moment in created if moment), default=self.until)
        if oldest < window.start:
            return None
        if oldest < self.until - SECOND:  # times are truncated to seconds
            return CrowdSecCursor(oldest + SECOND, min(larger, limit))
        return CrowdSecCursor(self.until, larger)

    def encode(self) -> list[Any]:
        """Return the page token; the inverse of `decode`."""
        return [self.until.isoformat(), self.size]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the cursor of a page token; the inverse of `encode`."""
        until, size = token
        return cls(datetime.fromisoformat(until), size)
