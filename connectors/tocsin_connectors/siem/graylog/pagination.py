"""Cursor over the events that Graylog created in a window.

A search returns at most 10,000 events on all its pages together, so each page starts at the time of
the last event on the previous page. The page number is used only for events with the same
millisecond. Duplicates are recognized.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

from tocsin import Broken, Window
from tocsin_connectors.siem.graylog.client import PROCESSED, EventPage, format_time
from tocsin_connectors.siem.records import parse_utc, text


@dataclass(frozen=True, slots=True)
class EventCursor:
    """Request for a page of the events made from `since` on."""

    since: str
    page: int = 1
    size: int | None = None
    """Number of events on a page if Graylog returns fewer than it is asked for."""

    @classmethod
    def first(cls, window: Window) -> Self:
        """Return the first cursor of a window."""
        return cls(format_time(window.start))

    def following(self, found: EventPage, size: int) -> EventCursor | None:
        """Return the next cursor, or None at the end. `size` is the requested page size.

        Raises `Broken` if the records do not allow reading to continue.
        """
        reached = list(_iterate_times(found.records))
        if any(one > next_one for one, next_one in pairwise(reached)):
            raise Broken(f"the events are not sorted by {PROCESSED}")
        count = len(found.records)
        if (self.page - 1) * size + count >= found.total:
            return None
        if not count:
            raise Broken(f"page {self.page} is empty, although there are {found.total} events")
        if reached and reached[-1] > self.since:
            return replace(self, since=reached[-1], page=1)
        if count < size:  # the number of a page depends on its size
            return replace(self, page=2 if self.page == 1 else 1, size=count)
        return replace(self, page=self.page + 1)

    def encode(self) -> list[Any]:
        """Return the page token; the inverse of `decode`."""
        return [self.since, self.page, self.size]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the cursor of a page token; the inverse of `encode`."""
        return cls(*token)


def _iterate_times(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the times of the events that have one, in the format of queries."""
    for record in records:
        with suppress(ValueError):
            if value := text(dict(record), PROCESSED):
                yield format_time(parse_utc(value))
