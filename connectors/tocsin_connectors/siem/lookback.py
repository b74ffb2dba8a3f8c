"""Lookback: providers whose SIEM can list records only by creation time.

New records are one stream, and changes are another. To find changes, the provider regularly lists
all records again that were created in the last days, and returns those that have changed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any, Protocol

from pydantic import Field
from typing_extensions import TypeVar

from tocsin import Duration, Listing, Page, Window, WindowedProvider
from tocsin_connectors.siem.interval_split import R, S, SplittableCursor, isolate_broken_record


class LookbackPage(Protocol):
    """Records that a request has listed."""

    @property
    def records(self) -> Sequence[dict[str, Any]]:
        """The records, in the order of the list."""
        ...

    @property
    def server_time(self) -> datetime | None:
        """The time of the server; None if unknown."""
        ...


NEW, CHANGED = "new", "changed"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INCOMPLETE = "Tocsin could not list some older records, so changes to them may be missing"


ChangesInterval = Annotated[
    Duration,
    Field(ge=timedelta(seconds=1), description="How often Tocsin checks for changed records."),
]
ChangesAge = Annotated[
    Duration,
    Field(
        gt=timedelta(0),
        description="How long Tocsin keeps checking a record for changes, counted from the "
        "record's creation.",
    ),
]
SettleDelay = Annotated[
    Duration,
    Field(
        le=timedelta(days=1),
        description="How old a record must be before Tocsin reads it. The SIEM's search might not "
        "find newer records yet.",
    ),
]
RefreshAges = Annotated[
    tuple[Duration, ...],
    Field(
        max_length=10,
        description="The delays after which Tocsin reads a new incident again, in addition to the "
        "checks for changes.",
    ),
]


ProviderSettings = TypeVar("ProviderSettings", bound="LookbackProvider.Settings", default=Any)


class LookbackProvider(WindowedProvider[ProviderSettings]):
    """Base class for providers that list records by creation time."""

    class Settings(WindowedProvider.Settings):
        """Settings shared by all lookback providers. For other defaults, use the types above."""

        changes_every: ChangesInterval = timedelta(minutes=15)
        changes_for: ChangesAge = timedelta(days=7)
        settle_delay: SettleDelay = timedelta(minutes=1)
        refresh_after: RefreshAges = ()

    passed_over = False
    """Whether the last listed window is incomplete."""

    def streams(self) -> Sequence[str]:
        """Return the streams: new records and changed records."""
        return (NEW, CHANGED)

    def longest_window(self, stream: str) -> timedelta | None:
        """Return the longest time of a query in addition to `overlap`; None for changes.

        Any window of changes lists all records of the lookback period, so one request should cover
        as many hours as possible.
        """
        return super().longest_window(stream) if stream == NEW else None

    def read_interval(self, stream: str) -> timedelta:
        """Return the interval between reads of a stream."""
        poll = super().read_interval(stream)
        return poll if stream == NEW else max(poll, self.settings.changes_every)

    def listed_for(self, stream: str, window: Window) -> Window:
        """Return the creation times to list for a window of a stream."""
        if stream == NEW:
            return window
        return Window(window.start - self.settings.changes_for, window.end)

    async def list_page(
        self,
        stream: str,
        cursor: S,
        ask: Callable[[S], Awaitable[tuple[S, R]]],
        probe: Callable[[S], Awaitable[R]],
    ) -> tuple[S, R]:
        """Return a page and its cursor; for changes, a record that breaks the list is skipped."""
        if stream == NEW:
            return await ask(cursor)
        return await isolate_broken_record(cursor, ask, partial(probe, cursor), self.tools)

    def build_listing(
        self,
        stream: str,
        cursor: SplittableCursor,
        found: LookbackPage,
        following: SplittableCursor | None,
        is_changed: Callable[[dict[str, Any]], bool],
    ) -> Listing:
        """Return the page of a cursor; of the stream of changes, only records that have changed."""
        self.passed_over = cursor.passed_over and following is None
        return Listing(
            records=[record for record in found.records if stream == NEW or is_changed(record)],
            next_token=following and following.encode(),
            server_time=found.server_time,
        )

    async def read(
        self, stream: str, position: Mapping[str, Any] | None, until: datetime
    ) -> AsyncGenerator[Page, None]:
        """Yield new records up to `until`, and changes at intervals."""
        if stream == CHANGED:
            every = self.settings.changes_every
            until = _EPOCH + (until - _EPOCH) // every * every
        async with aclosing(super().read(stream, position, until)) as pages:
            async for page in pages:
                yield self._mark_losses(page)

    async def backfill(
        self, stream: str, position: Mapping[str, Any] | None, window: Window
    ) -> AsyncGenerator[Page, None]:
        """Yield records that were created or changed in a past window."""
        async with aclosing(super().backfill(stream, position, window)) as pages:
            async for page in pages:
                yield self._mark_losses(page)

    def _mark_losses(self, page: Page) -> Page:
        """Mark the intervals of a page as lost if the listing was incomplete."""
        if not self.passed_over:
            return page
        lost = tuple(replace(interval, lost=_INCOMPLETE) for interval in page.covered)
        return replace(page, covered=lost)
