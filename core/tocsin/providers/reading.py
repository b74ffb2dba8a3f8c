"""Reading a stream window by window, page by page, and around what breaks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, Protocol

import orjson

from tocsin.errors import Broken, Misconfigured, Refused
from tocsin.hookspecs import Tools
from tocsin.model import Covered, Incident, Json, Page, Rejected, Window
from tocsin.providers.cursor import SECOND, Cursor, digest, whole_second

PATIENCE = 2
"""After so many reads that broke in a row, it is found out where."""
MOST_PIECES = 200
"""So many pieces of a window are tried in one read to find that."""
MOST_PAGES = 10_000
_SMALL_PAGE = 10  # times smaller than usual
_LONGEST_REASON = 300
_KEPT = 16_384
# Whether the SIEM answers at all is asked of other times, which may have been given up as well
_ELSEWHERE = (timedelta(hours=1), timedelta(days=1), timedelta(days=7))

Step = tuple[Cursor, Page]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One page of what a SIEM lists, as it came."""

    records: Sequence[Mapping[str, Json]]
    next_token: Json = None
    """What the next page is asked for with; None at the last one."""
    server_time: datetime | None = None
    """What time the SIEM had; None if it did not say."""


class Source(Protocol):
    """What is read: a `WindowedProvider`."""

    page_size: ClassVar[int]
    settings: Any
    tools: Tools
    clock_skew: timedelta | None

    async def list_changes(self, stream: str, window: Window, token: Json, limit: int) -> Listing:
        """Return a page of what changed in the window."""
        ...

    def to_incident(self, record: Mapping[str, Json]) -> Incident | None:
        """Return the incident of a record."""
        ...

    async def complete(self, incident: Incident, record: Mapping[str, Json]) -> Incident:
        """Return the incident with what the list does not say of it."""
        ...


@dataclass(slots=True)
class _Taken:
    """What the records of one page came to."""

    incidents: list[Incident] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    brought: dict[str, int] = field(default_factory=dict)
    records: int = 0

    def page(self, cursor: Cursor, *covered: Covered) -> Page:
        """Return the page that is stored with this cursor."""
        return Page(
            next_position=cursor.encode(),
            incidents=tuple(self.incidents),
            rejected=tuple(self.rejected),
            covered=covered,
            records=self.records,
        )


class WindowReader:
    """Reads one stream; what it remembers between two reads is only how often it broke."""

    def __init__(self, source: Source, stream: str) -> None:
        self._source = source
        self._stream = stream
        self._breaks = 0

    async def pages(
        self, cursor: Cursor, end: datetime, overlap: timedelta
    ) -> AsyncGenerator[Page, None]:
        """Yield what changed from the cursor on up to `end`, or as far as the SIEM's clock goes."""
        longest = self._source.settings.longest_window
        while (window := (cursor := cursor.towards(end, overlap, longest)).window) is not None:
            async with aclosing(self._window(cursor)) as steps:
                async for reached, page in steps:
                    cursor = reached
                    yield page
            if cursor.watermark < window.end:
                return

    async def _window(self, cursor: Cursor) -> AsyncGenerator[Step, None]:
        window = cursor.window
        # Of a single second nothing is left to find out: whoever asked for it asks again later
        is_divisible = window is not None and window.end - window.start > SECOND
        often = self._breaks >= PATIENCE and is_divisible
        reading = self._around(cursor) if often else self._drain(cursor, self._source.page_size)
        try:
            async with aclosing(reading) as steps:
                async for step in steps:
                    yield step
        except Broken:
            self._breaks += 1
            raise
        self._breaks = 0

    async def _drain(self, cursor: Cursor, size: int) -> AsyncGenerator[Step, None]:
        """Yield the pages of the cursor's window; nothing where the SIEM has not come to it yet."""
        listing, cursor = await self._begin(cursor, size)
        tokens: set[bytes] = set()
        window = cursor.window
        while window is not None:
            taken = await self._take(listing, cursor, window)
            cursor = cursor.remembering(taken.brought)
            before = cursor.watermark
            if listing.next_token is None:
                kept = 2 * self._source.settings.overlap
                cursor = cursor.finished(window.end, kept)
                yield cursor, taken.page(cursor, self._covered(before, cursor.watermark))
                return
            cursor = replace(cursor, token=_turn(listing.next_token, tokens))
            yield cursor, taken.page(cursor, self._covered(before, before))
            listing = await self._list(window, cursor.token, size)

    async def _begin(self, cursor: Cursor, size: int) -> tuple[Listing, Cursor]:
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
        if ready <= cursor.watermark:
            return listing, replace(cursor, window=None)
        window = Window(window.start, ready)
        return await self._list(window, None, size), replace(cursor, window=window)

    def _ready(self, listing: Listing) -> datetime | None:
        """Return up to when the SIEM has everything; None where it does not say what time it is."""
        if listing.server_time is None:
            return None
        return whole_second(listing.server_time - self._source.settings.settle_delay)

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
            self._source.clock_skew = listing.server_time - self._source.tools.clock.now()
        return listing

    async def _take(self, listing: Listing, cursor: Cursor, window: Window) -> _Taken:
        """Return what the records say that were not seen before."""
        taken = _Taken(records=len(listing.records))
        for record in listing.records:
            name = digest(record)
            if name in cursor.seen or name in taken.brought:
                continue
            incident = self._parse(record, window, taken.rejected)
            changed_at = window.end
            if incident is not None:
                changed_at = incident.changed_at or changed_at
                taken.incidents.append(await self._complete(incident, record))
            taken.brought[name] = int(changed_at.timestamp())
        return taken

    def _parse(
        self, record: Mapping[str, Json], window: Window, rejected: list[Rejected]
    ) -> Incident | None:
        try:
            return self._source.to_incident(record)
        except ValueError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - a record that meets a bug must not stop the feed
            reason = f"it met a bug: {error!r}"
        rejected.append(
            Rejected(
                source=self._stream,
                location=f"changed from {window.start.isoformat()} to {window.end.isoformat()}",
                reason=reason[:_LONGEST_REASON],
                content=orjson.dumps(record)[:_KEPT],
            )
        )
        return None

    async def _complete(self, incident: Incident, record: Mapping[str, Json]) -> Incident:
        try:
            return await self._source.complete(incident, record)
        except Broken as error:
            words = "an incident is kept without its details for now"
            self._source.tools.log.warning(
                words, external_id=incident.external_id, reason=str(error)
            )
            return incident

    async def _around(self, cursor: Cursor) -> AsyncGenerator[Step, None]:
        """Yield the window's pages piece by piece, giving up the seconds that break each time.

        Nothing is given up while nothing else can be read either.
        """
        assert cursor.window is not None  # noqa: S101 - there is one to read
        place, end = cursor.window.start, cursor.window.end
        span, works = end - place, False
        for _ in range(MOST_PIECES):
            if place >= end:
                return
            piece = replace(cursor, window=Window(place, min(place + span, end)), token=None)
            try:
                async with aclosing(
                    self._drain(piece, self._source.page_size // _SMALL_PAGE)
                ) as steps:
                    async for reached, page in steps:
                        cursor = reached
                        yield reached, page
            except Broken as error:
                if span > SECOND:
                    span = timedelta(seconds=int(span.total_seconds()) // 2)
                    continue
                if not (works or await self._answers(place)):
                    raise
                lost = Covered(
                    source=self._stream, start=place, end=place + SECOND, lost=str(error)
                )
                place = place + SECOND
                cursor = cursor.past(place)
                yield cursor, Page(next_position=cursor.encode(), covered=(lost,))
            else:
                place, span, works = min(place + span, end), span * 2, True

    async def _answers(self, place: datetime) -> bool:
        """Return whether the SIEM can list anything at all."""
        for ago in _ELSEWHERE:
            with suppress(Broken):
                await self._list(Window(place - ago, place - ago + SECOND), None, 1)
                return True
        return False

    def _covered(self, start: datetime, end: datetime) -> Covered:
        return Covered(source=self._stream, start=start, end=end)


def _turn(token: Json, tokens: set[bytes]) -> Json:
    """Return the token of the next page; Broken where the pages would never end."""
    name = orjson.dumps(token)
    if name in tokens:
        raise Broken(f"the SIEM leads to the same page again: {name[:80]!r}")
    tokens.add(name)
    if len(tokens) > MOST_PAGES:
        raise Broken(f"the SIEM has more than {MOST_PAGES:,} pages of one window")
    return token
