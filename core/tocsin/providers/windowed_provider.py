"""Base class for providers that query changes by time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any, ClassVar

from pydantic import Field

from tocsin.errors import TryLater
from tocsin.fields import Duration
from tocsin.hookspecs import Provider
from tocsin.model import Incident, Json, Page, Window
from tocsin.providers.cursor import (
    SECOND,
    WindowCursor,
    ceil_to_second,
    decode_cursor,
    floor_to_second,
)
from tocsin.providers.window_reader import Listing, WindowReader

__all__ = ["Listing", "WindowedProvider"]


class WindowedProvider(Provider):
    """A provider that asks for what changed in a window of time; derive and say how.

    Both ends of a window stay as they are until its last page is stored. Windows overlap, and what
    was seen of the overlap is known by its content, so that nothing is missed that changes within
    the same moment or becomes visible late, and nothing is read twice in vain. A page that breaks
    is asked for again, then in ever smaller windows until the second is found that cannot be read;
    it is recorded as lost, and tried again later.
    """

    class Settings(Provider.Settings):
        """What every provider that reads by windows can be told."""

        first_fetch: Duration = Field(
            default=timedelta(hours=24),
            description="At the very first read, begin with what changed so long ago.",
        )
        overlap: Duration = Field(
            default=timedelta(minutes=10),
            le=timedelta(days=7),
            description="How far each read goes back behind the last one, for what the SIEM shows "
            "late.",
        )
        settle_delay: Duration = Field(
            default=timedelta(seconds=30),
            le=timedelta(days=1),
            description="How old a change must be to be read, for the SIEM to have it complete.",
        )
        longest_window: Duration = Field(
            default=timedelta(hours=1),
            ge=SECOND,
            description="How much time is asked for at once when there is much to catch up on.",
        )
        reread_after: tuple[Duration, ...] = Field(
            default=(timedelta(minutes=2), timedelta(minutes=10), timedelta(minutes=30)),
            max_length=10,
            description="How long after an incident was new to read it again, since its alerts and "
            "entities may come later.",
        )

    page_size: ClassVar[int] = 100
    """How many records to ask for at once."""

    def __init__(self, settings: Any, tools: Any) -> None:
        """Keep what is needed; do no I/O."""
        super().__init__(settings, tools)
        self._readers: dict[tuple[str, bool], WindowReader] = {}

    @abstractmethod
    async def list_changes(self, stream: str, window: Window, token: Json, limit: int) -> Listing:
        """Return a page of what changed in the window, by the SIEM's own time of change.

        `token` is None for the first page, afterwards the `next_token` of the page before. Ask for
        `limit` records, in ascending order of change if the SIEM can. The ends of the window are
        whole seconds. Raises what `Api.request` raises; never returns less than there was.
        """

    @abstractmethod
    def to_incident(self, record: Mapping[str, Json]) -> Incident | None:
        """Return the incident that a record is a version of, None for one that is not wanted.

        Raises ValueError with the reason for a record that cannot be understood: it is kept aside.
        """

    def record_version(self, record: Mapping[str, Json]) -> Json:
        """Return what is the same in each answer until the incident changes: all of the record.

        Leave out of it what differs in every answer, such as a score of the search or a remaining
        time; else all of the overlap is stored anew at each read.
        """
        return record

    def longest_window(self, stream: str) -> timedelta | None:  # noqa: ARG002
        """Return how much time of a stream is asked for at once at most, None for all there is."""
        longest: timedelta = self.settings.longest_window
        return longest

    async def complete(self, incident: Incident, record: Mapping[str, Json]) -> Incident:  # noqa: ARG002
        """Return the incident with what the list does not say of it, such as its entities.

        Only asked for versions that were not seen before. Where it raises `TryLater`, what came
        before is stored, and reading goes on from there; where it raises anything else, the
        incident is stored as the list has it.
        """
        return incident

    async def read(
        self, stream: str, position: Mapping[str, Any] | None, until: datetime
    ) -> AsyncGenerator[Page, None]:
        """Yield what changed from `position` up to `until`, less the settle delay."""
        settings = self.settings
        reader = self._reader(stream)
        end = floor_to_second(until + reader.lead - settings.settle_delay)
        start = until - settings.first_fetch
        cursor = WindowCursor.first(start) if position is None else decode_cursor(position)
        if position is None:  # so that a first read that brings nothing is not the first again
            yield Page(next_position=cursor.encode())
        async with aclosing(reader.pages(cursor, end, settings.overlap)) as pages:
            async for page in pages:
                yield page

    async def backfill(
        self, stream: str, position: Mapping[str, Any] | None, window: Window
    ) -> AsyncGenerator[Page, None]:
        """Yield what last changed in a window of the past."""
        cursor = WindowCursor.exactly(window.start) if position is None else decode_cursor(position)
        reader, end = self._reader(stream, past=True), ceil_to_second(window.end)
        async with aclosing(reader.pages(cursor, end, SECOND)) as pages:
            async for page in pages:
                cursor = decode_cursor(page.next_position)
                yield page
        if cursor.watermark < end:
            raise TryLater(f"the SIEM has not come to the window's end, but to {cursor.watermark}")

    def _reader(self, stream: str, *, past: bool = False) -> WindowReader:
        """Return the stream's reader, which remembers what has broken."""
        key = stream, past
        if key not in self._readers:
            self._readers[key] = WindowReader(self, stream)
        return self._readers[key]
