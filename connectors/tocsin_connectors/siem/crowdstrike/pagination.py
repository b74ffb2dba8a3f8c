"""Cursor over the alerts that were updated in a window, with filters in the Falcon Query Language.

Each page starts at the time at which the last alert on the previous page was updated. An alert that
changes in the meantime moves past the end of the window, and nothing else moves. The page token,
which soon expires, is used only for alerts that were updated in the same millisecond. Duplicates
are recognized.

https://www.falconpy.io/Usage/Falcon-Query-Language.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, Self

from tocsin import Broken, Window
from tocsin_connectors.siem.records import format_milliseconds, parse_utc, text

UPDATED = "updated_timestamp"
"""In nanoseconds; filters and sort orders have it in milliseconds, truncated."""
UPDATE_ORDER = f"{UPDATED}|asc"


def quote_value(value: str) -> str:
    """Quote and escape a text as a filter value."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def build_update_filter(since: str, until: datetime) -> str:
    """Return the filter for updates from `since` on and before `until`."""
    return f"{UPDATED}:>={quote_value(since)}+{UPDATED}:<{quote_value(format_milliseconds(until))}"


@dataclass(frozen=True, slots=True)
class AlertPage:
    """One page of alerts."""

    records: Sequence[Mapping[str, Any]]
    total: int
    """Number of alerts that match the filter, on all pages."""
    after: str | None
    server_time: datetime | None


@dataclass(frozen=True, slots=True)
class AlertCursor:
    """Request for the alerts updated from `since` on, or for those after a page token."""

    since: str
    after: str | None = None

    @classmethod
    def first(cls, window: Window) -> Self:
        """Return the first cursor of a window."""
        return cls(format_milliseconds(window.start))

    def following(self, found: AlertPage) -> AlertCursor | None:
        """Return the next cursor, or None at the end.

        Raises `Broken` if the records do not allow reading to continue.
        """
        reached = [format_milliseconds(moment) for moment in _iterate_updated(found.records)]
        if any(one > next_one for one, next_one in pairwise(reached)):
            raise Broken(f"the alerts are not sorted by {UPDATED}")
        if not self._has_next(found):
            return None
        if reached and reached[-1] > self.since:
            return AlertCursor(reached[-1])
        if found.after is None:
            raise Broken(
                f"the response with {len(found.records)} alerts that changed at {self.since} has "
                "no page token"
            )
        return AlertCursor(self.since, found.after)

    def _has_next(self, found: AlertPage) -> bool:
        if not found.records:
            return False
        is_whole = self.after is None and found.total <= len(found.records)
        return not is_whole and (found.after is not None or self.after is None)

    def encode(self) -> list[Any]:
        """Return the page token; the inverse of `decode`."""
        return [self.since, self.after]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the cursor of a page token; the inverse of `encode`."""
        return cls(*token)


def _iterate_updated(records: Sequence[Mapping[str, Any]]) -> Iterator[datetime]:
    """Yield the update times of the records that have one."""
    for record in records:
        with suppress(ValueError):
            if value := text(dict(record), UPDATED):
                yield parse_utc(value)
