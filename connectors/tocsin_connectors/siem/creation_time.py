"""Providers whose SIEM searches records by creation time, without a page token.

Each search starts at the time of the last record that the previous search returned. Duplicates are
recognized.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Self

from typing_extensions import TypeVar

from tocsin import Broken, Listing, Window
from tocsin_connectors.siem.lookback import LookbackProvider

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


@dataclass(frozen=True, slots=True)
class CreatedPage:
    """Answer of a search."""

    records: Sequence[dict[str, Any]]
    more: bool
    """Whether more records match the search."""
    server_time: datetime | None


@dataclass(frozen=True, slots=True)
class CreationCursor:
    """Search for the records in a part of the window that were created at or after `since`."""

    part: Window
    since: datetime
    step: int = 0
    """Number of searches from `since` that returned nothing later."""
    passed_over: bool = False
    """Whether a part of the window could not be listed."""

    @classmethod
    def first(cls, whole: Window) -> Self:
        """Return the first cursor of a window."""
        return cls(whole, whole.start)

    @property
    def span(self) -> timedelta:
        """Length of the requested interval."""
        return self.part.end - self.since

    def halved(self) -> CreationCursor:
        """Return the cursor for the first half of the interval."""
        end = self.since + self.span // 2
        return replace(self, part=Window(self.part.start, end), step=0)

    def skip_interval(self) -> CreationCursor:
        """Return the cursor after its part, without records of it."""
        return replace(self, step=0, passed_over=True)

    def following(
        self, whole: Window, created: Sequence[datetime], *, more: bool
    ) -> CreationCursor | None:
        """Return the next cursor, or None at the end.

        `created` has the times of the page. Raises `Broken` if they are not in order.
        """
        if any(one > next_one for one, next_one in pairwise(created)):
            raise Broken("the records are not sorted by creation time")
        if more and created and created[-1] > self.since:
            return replace(self, since=created[-1], step=0)
        if more:
            return replace(self, step=self.step + 1)
        if self.part.end < whole.end:
            rest = Window(self.part.end, whole.end)
            return replace(self, part=rest, since=rest.start, step=0)
        return None

    def encode(self) -> list[Any]:
        """Return the page token; the inverse of `decode`."""
        times = (self.part.start, self.part.end, self.since)
        return [*(moment.isoformat() for moment in times), self.step, self.passed_over]

    @classmethod
    def decode(cls, token: Any) -> Self:
        """Return the cursor of a page token; the inverse of `encode`."""
        *times, step, passed_over = token
        start, end, since = map(datetime.fromisoformat, times)
        return cls(Window(start, end), since, step, passed_over)


ProviderSettings = TypeVar("ProviderSettings", bound="LookbackProvider.Settings", default=Any)


class CreationTimeProvider(LookbackProvider[ProviderSettings]):
    """Base class for providers that search records by creation time."""

    precision: ClassVar[timedelta]
    """Smallest time that a search distinguishes."""

    @abstractmethod
    async def search(self, cursor: CreationCursor, limit: int) -> CreatedPage:
        """Return the records of a cursor, oldest first. Raises what `Api.request` raises."""

    @abstractmethod
    def parse_times(self, record: dict[str, Any]) -> tuple[datetime, datetime]:
        """Return when a record was created and when it last changed.

        Raises ValueError if it was created at no valid time.
        """

    async def list_changes(self, stream: str, window: Window, token: Any, limit: int) -> Listing:
        """Return a page of the records that were created or changed in the window.

        Records are found by when they were created: for changes, all of `changes_for` is listed.
        """
        whole = self.listed_for(stream, window)
        cursor = CreationCursor.first(whole) if token is None else CreationCursor.decode(token)
        asked = partial(self._ask, limit=limit)
        cursor, found = await self.list_page(stream, cursor, asked, self._probe)
        following = cursor.following(whole, self._list_times(found.records), more=found.more)
        is_changed = partial(self._changed_in, window=window)
        return self.build_listing(stream, cursor, found, following, is_changed)

    async def _ask(self, cursor: CreationCursor, limit: int) -> tuple[CreationCursor, CreatedPage]:
        return cursor, await self.search(cursor, limit)

    async def _probe(self, cursor: CreationCursor) -> CreatedPage:
        """Return an empty page if the SIEM can list anything before the cursor's interval."""
        before = Window(cursor.part.start - 2 * self.precision, cursor.part.start - self.precision)
        found = await self.search(CreationCursor.first(before), 1)
        return replace(found, records=(), more=False)

    def _list_times(self, records: Sequence[dict[str, Any]]) -> list[datetime]:
        """Return the creation times of the records that have one, as precise as searches are."""
        times = []
        for record in records:
            with suppress(ValueError):
                created_at, _ = self.parse_times(record)
                times.append(_EPOCH + (created_at - _EPOCH) // self.precision * self.precision)
        return times

    def _changed_in(self, record: dict[str, Any], window: Window) -> bool:
        """Return whether a record changed in a window after it was created."""
        with suppress(ValueError):
            created_at, changed_at = self.parse_times(record)
            return changed_at > created_at and changed_at in window
        return False
