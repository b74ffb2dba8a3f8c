"""Window reader: pages of one stream, with isolation of records that fail."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

import orjson

from tocsin.errors import Broken, Misconfigured, Refused
from tocsin.model import Covered, Json, Page, Window
from tocsin.providers.cursor import SECOND, WindowCursor, floor_to_second
from tocsin.providers.record_mapper import RecordMapper, RecordSource

SEARCH_THRESHOLD = 2
"""After so many reads that broke in a row, it is found out where."""
MAX_PIECES = 200
"""So many pieces of a window are tried in one read to find that."""
MAX_GIVEN_UP = 30
"""Where so many seconds in a row break it is an outage, and nothing is given up for a while."""
FORCE_THRESHOLD = 8
"""After so many reads that broke in a row, not even an outage holds up what is behind it."""
MAX_PAGES = 1_000
"""A window has fewer pages, or the SIEM does not end them."""
MAX_PAGES_PER_PIECE = 200
SMALL_PAGE = 10
"""So much smaller than usual are pages while it is found out what breaks."""
CLOCK_STEP_BACK = timedelta(minutes=15)
"""A clock further behind what was read already was ahead when that was read."""
SKEW_SAMPLES = 2
"""So many answers in a row have to agree that the SIEM's clock is ahead."""
# Whether the SIEM answers at all is asked of other times, which may have been given up as well
_PROBE_OFFSETS = (timedelta(hours=1), timedelta(days=1), timedelta(days=7))

WindowStep = tuple[WindowCursor, Page]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One page of what a SIEM lists, as it came."""

    records: Sequence[Mapping[str, Json]]
    next_token: Json = None
    """What the next page is asked for with; None at the last one."""
    server_time: datetime | None = None
    """What time the SIEM had; None if it did not say."""


class WindowSource(RecordSource, Protocol):
    """What is read: a `WindowedProvider`."""

    clock_skew: timedelta | None

    async def list_changes(self, stream: str, window: Window, token: Json, limit: int) -> Listing:
        """Return a page of what changed in the window."""
        ...

    def longest_window(self, stream: str) -> timedelta | None:
        """Return how much time is asked for at once at most, None for all there is."""
        ...


class WindowReader:
    """Reads one stream; what it remembers between two reads is only how often it broke."""

    def __init__(self, source: WindowSource, stream: str) -> None:
        self._source = source
        self._stream = stream
        self._taker = RecordMapper(source, stream)
        self._breaks = 0
        self._skews: deque[timedelta] = deque(maxlen=SKEW_SAMPLES)

    @property
    def lead(self) -> timedelta:
        """How far the SIEM's clock is certainly ahead of ours."""
        certain = min(self._skews) if len(self._skews) == SKEW_SAMPLES else timedelta(0)
        return max(certain, timedelta(0))

    async def pages(
        self, cursor: WindowCursor, end: datetime, overlap: timedelta
    ) -> AsyncGenerator[Page, None]:
        """Yield what changed from the cursor on up to `end`, or as far as the SIEM's clock goes."""
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
        # Of a single second nothing is left to find out: whoever asked for it asks again later
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
        """Yield the pages of the cursor's window; none where the SIEM has not come to it yet."""
        asked_from = cursor.watermark
        listing, cursor = await self._begin(cursor, size)
        window, before = cursor.window, cursor.watermark
        if before < asked_from:
            yield cursor, Page(next_position=cursor.encode())
        turning = _PageTurner(most)
        while window is not None:
            taken = await self._taker.take(listing.records, cursor.seen, window)
            cursor = cursor.remembering(taken.brought)
            if taken.stopped is not None:
                if taken.brought:  # so that it is not taken again
                    yield cursor, taken.page(cursor, self._covered(before, before))
                raise taken.stopped
            if listing.next_token is None:
                cursor = cursor.finished(window.end, 2 * self._source.settings.overlap)
                yield cursor, taken.page(cursor, self._covered(before, cursor.watermark))
                return
            cursor = turning.turn(cursor, listing.next_token)
            yield cursor, taken.page(cursor, self._covered(before, before))
            listing = await self._list(window, cursor.token, size)

    async def _begin(self, cursor: WindowCursor, size: int) -> tuple[Listing, WindowCursor]:
        """Return the first page to read of the window, and the cursor with the window as it is.

        A page token may have expired since it was stored: then the window begins anew. The SIEM's
        clock may be behind: then the window ends where it has come to.
        """
        window = cursor.window
        assert window is not None  # noqa: S101 - there is one to begin
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
        """Return up to when the SIEM has everything; None where it does not say what time it is."""
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
            raise Broken(f"the page token is not accepted any more: {refused}") from None
        if listing.server_time is not None:
            skew = listing.server_time - self._source.tools.clock.now()
            self._source.clock_skew = skew
            self._skews.append(skew)
        return listing

    async def _around(self, cursor: WindowCursor) -> AsyncGenerator[WindowStep, None]:
        """Yield the window's pages piece by piece, giving up the seconds that break each time.

        Nothing is given up while nothing else can be read either, be it behind those seconds.
        """
        assert cursor.window is not None  # noqa: S101 - there is one to read
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
                if cursor.watermark < search.piece.end:  # the SIEM has not come to it yet
                    return
                search.widen()
        if search.lost:
            if not (search.works or await self._answers(search.lost[0])):
                raise Broken(str(search.lost[0].lost))
            yield self._give_up(cursor, search)
        if not search.is_over:
            raise Broken(f"{MAX_PIECES} pieces of a window were not enough to find what breaks")

    async def _piece(
        self, cursor: WindowCursor, search: _FailureSearch
    ) -> AsyncGenerator[WindowStep, None]:
        size = self._source.page_size // SMALL_PAGE
        if search.lost:  # before these are given up, something behind them has to be there
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
        assert isinstance(end, datetime)  # noqa: S101 - it was made of a window
        cursor = cursor.giving_up(end)
        return cursor, Page(next_position=cursor.encode(), covered=lost)

    async def _answers(self, lost: Covered) -> bool:
        """Return whether the SIEM can list anything at all."""
        place = lost.start
        assert isinstance(place, datetime)  # noqa: S101 - it was made of a window
        for ago in _PROBE_OFFSETS:
            with suppress(Broken):
                await self._list(Window(place - ago, place - ago + SECOND), None, 1)
                return True
        return False

    def _covered(self, start: datetime, end: datetime) -> Covered:
        return Covered(source=self._stream, start=start, end=end)


class _FailureSearch:
    """Looks for the seconds of a window that break, by reading ever smaller pieces of it."""

    def __init__(self, window: Window, most: int) -> None:
        self._end = window.end
        self._most = most
        self._span = window.end - window.start
        self.piece = window
        self.works = False
        """Whether any piece could be read."""
        self.lost: list[Covered] = []
        """The seconds that broke, before those that were not tried yet."""

    @property
    def is_over(self) -> bool:
        """Whether the window was tried to its end."""
        return self.piece.start >= self._end

    def widen(self) -> None:
        """Go on behind a piece that was read."""
        self.works = True
        self._span *= 2
        self._begin(self.piece.end)

    def narrow(self, source: str, error: Broken) -> None:
        """Take less at once or, where it was a second, note it as lost.

        Raises the error where too many in a row are.
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
    """Turns the pages of one window, as long as they lead on."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._tokens: set[bytes] = set()

    def turn(self, cursor: WindowCursor, token: Json) -> WindowCursor:
        """Return the cursor at the next page; Broken where the pages would never end."""
        name = orjson.dumps(token)
        if name in self._tokens:
            raise Broken(f"the SIEM leads to the same page again: {name[:80]!r}")
        if cursor.pages >= self._most:
            raise Broken(f"the SIEM has more than {self._most:,} pages of one window")
        self._tokens.add(name)
        return cursor.turned(token)
