"""Cursor over the detections of several rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Self

from tocsin import Window
from tocsin_connectors.siem.interval_split import take_first_half
from tocsin_connectors.siem.secops.client import DetectionPage, SecOpsClient

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class DetectionCursor:
    """Request for a page of the detections of a rule created in a part of the window."""

    rule: str
    part: Window
    page: str | None = None
    passed_over: bool = False
    """Whether a part of the interval could not be listed."""
    others: tuple[str, ...] | None = None
    """Rules to list after this one; None until they are known."""

    @classmethod
    def first(cls, rule: str, whole: Window) -> Self:
        """Return the first cursor, of the first rule."""
        return cls(rule, whole)

    def halved(self) -> DetectionCursor:
        """Return the cursor for the first half of the interval."""
        return replace(self, part=take_first_half(self.part), page=None)

    @property
    def span(self) -> timedelta:
        """Length of the requested interval."""
        return self.part.end - self.part.start

    def skip_interval(self) -> DetectionCursor:
        """Return the cursor after its part, without rows of it."""
        return replace(self, page=None, passed_over=True)

    def following(self, found: DetectionPage, whole: Window) -> DetectionCursor | None:
        """Return the next cursor, or None at the end of the last rule."""
        if found.next_token is not None:
            return replace(self, page=found.next_token)
        if self.part.end < whole.end:
            return replace(self, part=Window(self.part.end, whole.end), page=None)
        if not self.others:
            return None
        return replace(self, rule=self.others[0], others=self.others[1:], part=whole, page=None)

    def encode(self) -> list[Any]:
        """Return the page token; the inverse of `decode`."""
        times = (self.part.start.isoformat(), self.part.end.isoformat())
        others = None if self.others is None else list(self.others)
        return [self.rule, *times, self.page, self.passed_over, others]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the cursor of a page token; the inverse of `encode`."""
        rule, start, end, page, passed_over, *others = token
        part = Window(datetime.fromisoformat(start), datetime.fromisoformat(end))
        names = None if others in ([], [None]) else tuple(others[0])
        return cls(rule, part, page, passed_over, names)


async def list_page(
    client: SecOpsClient, cursor: DetectionCursor, limit: int
) -> tuple[DetectionCursor, DetectionPage]:
    """Return a cursor and its page."""
    return cursor, await client.detections(cursor.rule, cursor.part, cursor.page, limit)


async def probe_page(client: SecOpsClient, cursor: DetectionCursor) -> DetectionPage:
    """Return an empty page if the API can list anything outside of a cursor's interval."""
    before = Window(cursor.part.start - _SECOND, cursor.part.start)
    found = await client.detections(cursor.rule, before, None, 1)
    return replace(found, records=(), next_token=None)
