"""Window reader: pages of one stream, with isolation of records that fail."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeVar

import orjson

from tocsin.errors import Broken, Misconfigured, Refused
from tocsin.model import Covered, Json, Page, Window
from tocsin.providers.cursor import SECOND, WindowCursor, floor_to_second
from tocsin.providers.record_mapper import MappedRecords, RecordMapper, RecordSource

SEARCH_THRESHOLD = 2
"""How many consecutive failures start a search for the failing records."""
MAX_PIECES = 200
"""How many pieces of a window one search may try."""
MAX_GIVEN_UP = 30
"""How many consecutive failing seconds count as an outage, in which nothing is given up."""
FORCE_THRESHOLD = 8
"""After how many consecutive failures even an outage is skipped."""
MAX_PAGES = 1_000
"""After how many pages of a window the reader assumes that the SIEM repeats pages."""
MAX_PAGES_PER_PIECE = 200
SMALL_PAGE = 10
"""The factor by which a search reduces the page size."""
CLOCK_STEP_BACK = timedelta(minutes=15)
"""If the clock is this far behind the watermark, it was ahead during the earlier read."""
SKEW_SAMPLES = 2
"""How many consecutive responses must agree that the SIEM's clock is ahead."""
# Offsets of probes for whether the SIEM can list anything at all
_PROBE_OFFSETS = (timedelta(hours=1), timedelta(days=1), timedelta(days=7))

T = TypeVar("T")
WindowStep = tuple[WindowCursor, Page]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One page of records as the SIEM returned it."""

    records: Sequence[Mapping[str, Json]]
    next_token: Json = None
    """The token for the next page; None on the last page."""
    server_time: datetime | None = None
    """The current time according to the SIEM's clock; None if unknown."""


class WindowSource(RecordSource, Protocol):
    """The provider that is read, a `WindowedProvider`."""

    clock_skew: timedelta | None

    async def list_changes(self, stream: str, window: Window, token: Json, limit: int) -> Listing:
        """Return a page of the changes in the window."""
        ...

    def longest_window(self, stream: str) -> timedelta | None:
        """Return how much time one query can cover in addition to `overlap`; None for no limit."""
        ...


class WindowReader:
    """Reads one stream; between reads it remembers only failures and clock skews."""

    def __init__(self, source: WindowSource, stream: str, *, past: bool = False) -> None:
        self._source = source
        self._stream = stream
        self._taker = RecordMapper(source, stream, past=past)
        self._breaks = 0
        self._skews: deque[timedelta] = deque(maxlen=SKEW_SAMPLES)

    @property
    def lead(self) -> timedelta:
        """How far the SIEM's clock is certainly ahead of the local clock."""
        certain = min(self._skews) if len(self._skews) == SKEW_SAMPLES else timedelta(0)
        return max(certain, timedelta(0))

    async def pages(
        self, cursor: WindowCursor, end: datetime, overlap: timedelta
    ) -> AsyncGenerator[Page, None]:
        """Yield the changes from the cursor to `end`, or to the time of the SIEM clock."""
        longest = self._source.longest_window(self._stream)
        if cursor.window is None and cursor.watermark - end > CLOCK_STEP_BACK:
            cursor = cursor.rewound(end - overlap - SECOND)
        while (window := (cursor := cursor.towards(end, overlap, longest)).window) is not None:
            async with aclosing(self._window(cursor)) as steps:
                async for reached, page in steps:
                    cursor = reached
                    yield page
            if cursor.watermark < window.end:
                return

    async def _window(self, cursor: WindowCursor) -> AsyncGenerator[WindowStep, None]:
        window = cursor.window
        # A single second cannot be divided further; the caller tries again later
        is_divisible = window is not None and window.end - window.start > SECOND
        often = self._breaks >= SEARCH_THRESHOLD and is_divisible
        reading = (
            self._around(cursor)
            if often
            else self._drain(cursor, self._source.page_size, MAX_PAGES)
        )
        try:
            async with aclosing(reading) as steps:
                async for step in steps:
                    yield step
        except Broken:
            self._breaks += 1
            raise
        self._breaks = 0

    async def _drain(
        self, cursor: WindowCursor, size: int, most: int
    ) -> AsyncGenerator[WindowStep, None]:
        """Yield the pages of the window; none where the SIEM clock has not reached it.

        The next page is requested and mapped while one is stored.
        """
        asked_from = cursor.watermark
        listing, cursor = await self._begin(cursor, size)
        window, before = cursor.window, cursor.watermark
        if before < asked_from:
            yield cursor, Page(next_position=cursor.encode())
        turning = _PageTurner(most)
        if window is None:
            return
        taken = await self._taker.take(listing.records, cursor.seen, window)
        while True:
            cursor = cursor.remembering(taken.brought)
            if taken.stopped is not None:
                if taken.brought:  # so that these records are not mapped again
                    yield cursor, taken.page(cursor, self._covered(before, before))
                raise taken.stopped
            if listing.next_token is None:
                cursor = cursor.finished(window.end, 2 * self._source.settings.overlap)
                yield cursor, taken.page(cursor, self._covered(before, cursor.watermark))
                return
            cursor = turning.turn(cursor, listing.next_token)
            page = taken.page(cursor, self._covered(before, before))
            async with _begun(self._take_next(cursor, window, size)) as following:
                yield cursor, page
                listing, taken = await following

    async def _take_next(
        self, cursor: WindowCursor, window: Window, size: int
    ) -> tuple[Listing, MappedRecords]:
        """Return the page at the cursor, and its records mapped."""
        listing = await self._list(window, cursor.token, size)
        return listing, await self._taker.take(listing.records, cursor.seen, window)

    async def _begin(self, cursor: WindowCursor, size: int) -> tuple[Listing, WindowCursor]:
        """Return the first page of the window, and the cursor with the actual window.

        Where a stored page token has expired, the window restarts. Where the clock of the SIEM is
        behind, the window ends at the time of the SIEM.
        """
        window = cursor.window
        assert window is not None  # noqa: S101 - called with a window
        if cursor.token is not None:
            try:
                return await self._list(window, cursor.token, size), cursor
            except Broken:
                cursor = cursor.restarted()
        listing = await self._list(window, None, size)
        ready = self._ready(listing)
        if ready is None or ready >= window.end:
            return listing, cursor
        if cursor.watermark - ready > CLOCK_STEP_BACK:
            return listing, cursor.rewound(ready)
        if ready <= cursor.watermark:
            return listing, replace(cursor, window=None)
        window = Window(window.start, ready)
        return await self._list(window, None, size), replace(cursor, window=window)

    def _ready(self, listing: Listing) -> datetime | None:
        """Return the time up to which the SIEM is complete; None where its time is unknown."""
        if listing.server_time is None:
            return None
        return floor_to_second(listing.server_time - self._source.settings.settle_delay)

    async def _list(self, window: Window, token: Json, size: int) -> Listing:
        try:
            listing = await self._source.list_changes(self._stream, window, token, max(size, 1))
        except Misconfigured:
            raise
        except Refused as refused:
            if token is None:
                raise
            raise Broken(f"the page token is no longer valid: {refused}") from None
        if listing.server_time is not None:
            skew = listing.server_time - self._source.tools.clock.now()
            self._source.clock_skew = skew
            self._skews.append(skew)
        return listing

    async def _around(self, cursor: WindowCursor) -> AsyncGenerator[WindowStep, None]:
        """Yield the pages of the window in pieces, and give up the seconds that keep failing.

        Nothing is given up unless some other time can be read, after those seconds or before.
        """
        assert cursor.window is not None  # noqa: S101 - called with a window
        patient = self._breaks < FORCE_THRESHOLD
        search = _FailureSearch(cursor.window, MAX_GIVEN_UP if patient else MAX_PIECES)
        for _ in range(MAX_PIECES):
            if search.is_over:
                break
            try:
                async with aclosing(self._piece(cursor, search)) as steps:
                    async for reached, page in steps:
                        cursor = reached
                        yield cursor, page
            except Broken as error:
                search.narrow(self._stream, error)
            else:
                if cursor.watermark < search.piece.end:  # the SIEM clock has not reached it
                    return
                search.widen()
        if search.lost:
            if not (search.works or await self._answers(search.lost[0])):
                raise Broken(str(search.lost[0].lost))
            yield self._give_up(cursor, search)
        if not search.is_over:
            tried = f"Tocsin read {MAX_PIECES} parts of the window"
            raise Broken(f"{tried}, but could not find out which records fail")

    async def _piece(
        self, cursor: WindowCursor, search: _FailureSearch
    ) -> AsyncGenerator[WindowStep, None]:
        size = self._source.page_size // SMALL_PAGE
        if search.lost:  # give these up only if something after them can be read
            await self._list(search.piece, None, size)
            cursor, page = self._give_up(cursor, search)
            yield cursor, page
        at_piece = replace(cursor, window=search.piece, token=None, pages=0)
        async with aclosing(self._drain(at_piece, size, MAX_PAGES_PER_PIECE)) as steps:
            async for step in steps:
                yield step

    def _give_up(self, cursor: WindowCursor, search: _FailureSearch) -> WindowStep:
        lost, search.lost = tuple(search.lost), []
        end = lost[-1].end
        assert isinstance(end, datetime)  # noqa: S101 - created from a window
        cursor = cursor.giving_up(end)
        return cursor, Page(next_position=cursor.encode(), covered=lost)

    async def _answers(self, lost: Covered) -> bool:
        """Return whether the SIEM can list anything at all."""
        place = lost.start
        assert isinstance(place, datetime)  # noqa: S101 - created from a window
        for ago in _PROBE_OFFSETS:
            with suppress(Broken):
                await self._list(Window(place - ago, place - ago + SECOND), None, 1)
                return True
        return False

    def _covered(self, start: datetime, end: datetime) -> Covered:
        return Covered(source=self._stream, start=start, end=end)


@asynccontextmanager
async def _begun(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Begin the work on the next page while one is stored; it ends with the read at the latest."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # nothing waits for the task


class _FailureSearch:
    """Searches the failing seconds of a window by bisection."""

    def __init__(self, window: Window, most: int) -> None:
        self._end = window.end
        self._most = most
        self._span = window.end - window.start
        self.piece = window
        self.works = False
        """Whether any piece could be read."""
        self.lost: list[Covered] = []
        """The failing seconds before the next piece."""

    @property
    def is_over(self) -> bool:
        """Whether the end of the window is reached."""
        return self.piece.start >= self._end

    def widen(self) -> None:
        """Continue after a piece that was read."""
        self.works = True
        self._span *= 2
        self._begin(self.piece.end)

    def narrow(self, source: str, error: Broken) -> None:
        """Halve the piece or, for a single second, record it as lost.

        Raises the error after too many consecutive lost seconds.
        """
        if self._span > SECOND:
            self._span = timedelta(seconds=int(self._span.total_seconds()) // 2)
            self._begin(self.piece.start)
            return
        if len(self.lost) >= self._most:
            raise error
        start, end = self.piece.start, self.piece.end
        self.lost.append(Covered(source=source, start=start, end=end, lost=str(error)))
        self._begin(end)

    def _begin(self, place: datetime) -> None:
        self.piece = Window(place, min(place + self._span, self._end))


class _PageTurner:
    """Turns the pages of one window, and detects loops."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._tokens: set[bytes] = set()

    def turn(self, cursor: WindowCursor, token: Json) -> WindowCursor:
        """Return the cursor at the next page; raises Broken where the pages are endless."""
        name = orjson.dumps(token)
        if name in self._tokens:
            raise Broken(f"the SIEM returned the same page token twice: {name[:80]!r}")
        if cursor.pages >= self._most:
            raise Broken(f"the SIEM returned more than {self._most:,} pages for one window")
        self._tokens.add(name)
        return cursor.turned(token)
