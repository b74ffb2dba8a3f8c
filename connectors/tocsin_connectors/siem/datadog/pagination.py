"""Cursor over the signals of a window."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Self

from tocsin import Window
from tocsin_connectors.siem.datadog.client import DatadogClient, DatadogPage
from tocsin_connectors.siem.interval_split import take_first_half

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class SignalCursor:
    """Request for a page of the signals in a part of the window."""

    part: Window
    page: str | None = None
    passed_over: bool = False
    """Whether a part of the interval could not be listed."""

    @classmethod
    def first(cls, whole: Window) -> Self:
        """Return the first cursor."""
        return cls(whole)

    @property
    def span(self) -> timedelta:
        """Length of the requested interval."""
        return self.part.end - self.part.start

    def halved(self) -> SignalCursor:
        """Return the cursor for the first half of the interval."""
        return replace(self, part=take_first_half(self.part), page=None)

    def skip_interval(self) -> SignalCursor:
        """Return the cursor after its part, without signals of it."""
        return replace(self, page=None, passed_over=True)

    def following(self, found: DatadogPage, whole: Window) -> SignalCursor | None:
        """Return the next cursor, or None at the end."""
        if found.next_token is not None:
            return replace(self, page=found.next_token)
        if self.part.end < whole.end:
            return replace(self, part=Window(self.part.end, whole.end), page=None)
        return None

    def encode(self) -> list[Any]:
        """Return the page token; the inverse of `decode`."""
        times = (self.part.start.isoformat(), self.part.end.isoformat())
        return [*times, self.page, self.passed_over]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the cursor of a page token; the inverse of `encode`."""
        start, end, page, passed_over = token
        part = Window(datetime.fromisoformat(start), datetime.fromisoformat(end))
        return cls(part, page, passed_over)


async def list_page(
    client: DatadogClient, cursor: SignalCursor, limit: int
) -> tuple[SignalCursor, DatadogPage]:
    """Return a cursor and its page."""
    return cursor, await client.signals(cursor.part, cursor.page, limit)


async def probe_page(client: DatadogClient, cursor: SignalCursor) -> DatadogPage:
    """Return an empty page if the API can list anything outside of a cursor's interval."""
    before = Window(cursor.part.start - _SECOND, cursor.part.start)
    found = await client.signals(before, None, 1)
    return replace(found, records=(), next_token=None)
