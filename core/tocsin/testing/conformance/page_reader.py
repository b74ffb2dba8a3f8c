"""Page reader that stores each page with its position, as the core does."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import orjson

from tocsin.hookspecs import Provider
from tocsin.incidents import combine_versions
from tocsin.model import Covered, Incident, Page, Received, Rejected, Window
from tocsin.testing.conformance.rules import RuleViolation, catch_failure

MOST_PAGES = 1_000
"""The number of pages at which a read counts as endless."""

Position = dict[str, Any]
Action = Callable[[], object]
Begin = Callable[[str], AsyncGenerator[Page, None]]


def _nothing() -> None:
    """Do nothing."""


@dataclass(slots=True)
class ReaderStore:
    """Stored data of a provider: positions, pages and incidents."""

    positions: dict[str, bytes] = field(default_factory=dict)
    pages: list[Received] = field(default_factory=list)
    incidents: dict[str, Incident] = field(default_factory=dict)
    """Incidents by `external_id`, merged as the core does."""

    def position(self, stream: str) -> Position | None:
        """Return the stored position of a stream, None before its first page."""
        kept = self.positions.get(stream)
        return None if kept is None else orjson.loads(kept)

    def keep(self, stream: str, page: Page) -> None:
        """Store a page with its position."""
        self.positions[stream] = round_trip_json(page.next_position)
        self.add(page)

    def add(self, received: Received) -> None:
        """Store received incidents."""
        self.pages.append(received)
        for version in received.incidents:
            name = str(version.external_id)  # of any type: another rule checks that it is text
            known = self.incidents.get(name)
            self.incidents[name] = version if known is None else combine_versions(known, version)

    @property
    def delivered(self) -> list[Incident]:
        """Every version that arrived, in order."""
        return [version for page in self.pages for version in page.incidents]

    @property
    def rejected(self) -> list[Rejected]:
        """Every rejected record, in order."""
        return [rejected for page in self.pages for rejected in page.rejected]

    @property
    def covered(self) -> list[Covered]:
        """Every interval that a page accounts for, in order."""
        return [interval for page in self.pages for interval in page.covered]

    @property
    def lost(self) -> list[Covered]:
        """The intervals that could not be read."""
        return [interval for interval in self.covered if interval.lost]


class PageReader:
    """Reads the streams of a provider into a store."""

    def __init__(self, provider: Provider, store: ReaderStore | None = None) -> None:
        self.provider = provider
        self.store = store or ReaderStore()

    async def read(
        self,
        most: int | None = None,
        *,
        streams: Sequence[str] | None = None,
        after_each: Action = _nothing,
    ) -> int:
        """Read every stream to its end, or at most this many pages, and return the number of pages.

        Raises what the provider raises.
        """
        until = self.provider.tools.clock.now()
        return await self._take(partial(self._pages, until), most, streams, after_each)

    async def fill(self, window: Window, most: int | None = None) -> int:
        """Backfill a window, or at most this many pages, and return the number of pages."""
        return await self._take(partial(self._past, window), most)

    async def peek(self) -> list[Page]:
        """Return the pages of a complete read without storing them."""
        until, found = self.provider.tools.clock.now(), list[Page]()
        for stream in self.provider.streams():
            async with aclosing(self._pages(until, stream)) as pages:
                found += [page async for page in _bounded(pages)]
        return found

    async def failure(self) -> Exception | None:
        """Return the exception that a read raises, or None if it succeeds."""
        return await catch_failure(self.read())

    async def _take(
        self,
        begin: Begin,
        most: int | None,
        streams: Sequence[str] | None = None,
        after_each: Action = _nothing,
    ) -> int:
        count = 0
        for stream in streams or self.provider.streams():
            async with aclosing(begin(stream)) as pages:
                async for page in _bounded(pages):
                    self.store.keep(stream, page)
                    after_each()
                    count += 1
                    if count == most:
                        return count
        return count

    def _pages(self, until: datetime, stream: str) -> AsyncGenerator[Page, None]:
        return self.provider.read(stream, self.store.position(stream), until)

    def _past(self, window: Window, stream: str) -> AsyncGenerator[Page, None]:
        return self.provider.backfill(stream, self.store.position(stream), window)


async def _bounded(pages: AsyncGenerator[Page, None]) -> AsyncGenerator[Page, None]:
    """Yield the pages; fail when there are too many."""
    count = 0
    async for page in pages:
        yield page
        count += 1
        if count >= MOST_PAGES:
            raise RuleViolation(f"the read did not end after {MOST_PAGES:,} pages")


def round_trip_json(position: Mapping[str, Any]) -> bytes:
    """Return a position as stored JSON."""
    try:
        return orjson.dumps(position, option=orjson.OPT_PASSTHROUGH_DATETIME)
    except TypeError as error:
        raise RuleViolation(f"a position that is not JSON ({error}): {position!r}") from None
