"""Lookback: providers whose SIEM lists records by creation time only.

New records are one stream. Changes are another: at intervals, everything that was created in the
last days is listed again, and the records that changed in the meantime are taken.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, Self, TypeVar

from tocsin import Broken, Page, Tools, Window, WindowedProvider

MAX_SKIPPED = timedelta(hours=1)
"""So much is passed over at most for one record that breaks the list."""
_SKIPPED_INTERVAL = "what became of an hour is not known, since it cannot be listed"


class SplittableCursor(Protocol):
    """What to ask next."""

    @property
    def span(self) -> timedelta:
        """How much time it asks for."""
        ...

    def halved(self) -> Self:
        """Return the step that asks for half of the time, from its beginning."""
        ...

    def passing_over(self) -> Self:
        """Return the step from which reading goes on behind what could not be listed."""
        ...


S = TypeVar("S", bound=SplittableCursor)
R = TypeVar("R")


async def isolate_broken_record(
    step: S,
    ask: Callable[[S], Awaitable[tuple[S, R]]],
    probe: Callable[[], Awaitable[R]],
    tools: Tools,
) -> tuple[S, R]:
    """Return what is asked, and the step that has brought it.

    Of a part that breaks, once that is not more than an hour, it is what `probe` returns: an answer
    without records. Raises `Broken` where that breaks as well, since then nothing can be listed.
    """
    try:
        return await ask(step)
    except Broken as error:
        reason = error
    nothing = await probe()
    while step.span > MAX_SKIPPED:
        step = step.halved()
        try:
            return await ask(step)
        except Broken as error:
            reason = error
    tools.log.warning(_SKIPPED_INTERVAL, what=str(step), why=str(reason))
    return step.passing_over(), nothing


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
