"""Reading a SIEM that lists what it has by when that began, and by nothing else.

What is new is one stream. What became of it since is another: now and then all that began in days
before is listed anew, and what has changed meanwhile is taken.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tocsin import Page, Window, WindowedProvider

NEW, CHANGED = "new", "changed"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INCOMPLETE = "some of what began before cannot be listed, so that its changes are not known"


class LookbackProvider(WindowedProvider):
    """Derive, with the settings `changes_every` and `changes_for`: how often, and how far back."""

    passed_over = False
    """Whether the window that was listed last, to its end, could not be listed in full."""

    def streams(self) -> Sequence[str]:
        """Return what is read: what has begun, and what something has become of."""
        return (NEW, CHANGED)

    def longest_window(self, stream: str) -> timedelta | None:
        """Return how much time is asked for at once: of what has changed, all that there is.

        Whatever is asked for, all that began in days before is listed, and once serves all hours.
        """
        return super().longest_window(stream) if stream == NEW else None

    def listed_for(self, stream: str, window: Window) -> Window:
        """Return the time in which began what is to be listed for a window of a stream."""
        if stream == NEW:
            return window
        return Window(window.start - self.settings.changes_for, window.end)

    async def read(
        self, stream: str, position: Mapping[str, Any] | None, until: datetime
    ) -> AsyncGenerator[Page, None]:
        """Yield what is new up to `until`; what became of what is known, now and then."""
        if stream == CHANGED:
            every = self.settings.changes_every
            until = _EPOCH + (until - _EPOCH) // every * every
        async with aclosing(super().read(stream, position, until)) as pages:
            async for page in pages:
                yield self._accounted(page)

    async def backfill(
        self, stream: str, position: Mapping[str, Any] | None, window: Window
    ) -> AsyncGenerator[Page, None]:
        """Yield what began, or changed, in a window of the past."""
        async with aclosing(super().backfill(stream, position, window)) as pages:
            async for page in pages:
                yield self._accounted(page)

    def _accounted(self, page: Page) -> Page:
        """Return the page with its stretch as lost, where some of it could not be listed."""
        if not self.passed_over:
            return page
        lost = tuple(replace(stretch, lost=_INCOMPLETE) for stretch in page.covered)
        return replace(page, covered=lost)
