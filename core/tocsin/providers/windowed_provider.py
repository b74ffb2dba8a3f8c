"""Base class for providers that query changes by time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any, ClassVar

import structlog
from pydantic import Field, model_validator
from typing_extensions import TypeVar

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
_SAMPLE_SPANS = (timedelta(hours=1), timedelta(days=1), timedelta(days=7))
_SAMPLE_SIZE = 10
_log = structlog.get_logger()


S = TypeVar("S", bound="WindowedProvider.Settings", default=Any)


class WindowedProvider(Provider[S]):
    """Base class for providers that ask their SIEM for the changes in a time window.

    Both ends of a window stay fixed until the window's last page is stored. Windows overlap so that
    the provider does not miss simultaneous or late changes. The provider compares the contents of
    records and skips a record that it has already returned with the same content.

    If two reads in a row fail with `Broken`, the next read splits the window until it finds the
    seconds that cannot be read. If the provider can read other seconds, it reports the unreadable
    seconds as lost and continues. Tocsin retries lost seconds later, as a backfill.
    """

    class Settings(Provider.Settings):
        """Settings shared by all windowed providers."""

        first_fetch: Duration = Field(
            default=timedelta(hours=24),
            description="How far back the first read looks for changes.",
        )
        overlap: Duration = Field(
            default=timedelta(minutes=10),
            le=timedelta(days=7),
            description="How much each read overlaps the previous one in time, to find changes "
            "that appear late in the SIEM.",
        )
        settle_delay: Duration = Field(
            default=timedelta(seconds=30),
            le=timedelta(days=1),
            description="How old a change must be before Tocsin reads it, so that the SIEM has "
            "time to complete it.",
        )
        longest_window: Duration = Field(
            default=timedelta(hours=1),
            ge=SECOND,
            description="The longest time range, not counting `overlap`, that one query covers "
            "while Tocsin reads a backlog.",
        )
        refresh_after: tuple[Duration, ...] = Field(
            default=(timedelta(minutes=2), timedelta(minutes=10), timedelta(minutes=30)),
            max_length=10,
            description="The delays after which Tocsin reads a new incident again, because its "
            "alerts and entities may arrive late in the SIEM.",
        )

        @model_validator(mode="before")
        @classmethod
        def _rename_former_settings(cls, given: Any) -> Any:
            if isinstance(given, dict) and "reread_after" in given:
                _log.warning("setting renamed", old="reread_after", new="refresh_after")
                given = {"refresh_after": given["reread_after"], **given}
                del given["reread_after"]
            return given

    page_size: ClassVar[int] = 100
    """How many records to request per page."""

    def __init__(self, settings: S, tools: Any) -> None:
        """Store the settings and tools; do not perform I/O."""
        super().__init__(settings, tools)
        self._readers: dict[tuple[str, bool], WindowReader] = {}

    @abstractmethod
    async def list_changes(self, stream: str, window: Window, token: Json, limit: int) -> Listing:
        """Return a page of the records that changed in the SIEM within the window.

        `token` is None for the first page, then the `next_token` of the previous page. Request
        `limit` records, ordered by change time (oldest first) if the SIEM supports that. Both ends
        of the window are whole seconds. Raises the same errors as `Api.request`. Never return
        incomplete results.
        """

    @abstractmethod
    def to_incident(self, record: Mapping[str, Json]) -> Incident | None:
        """Return the incident for a record, or None to ignore the record.

        If the record is invalid, raise ValueError with the reason. Tocsin then quarantines it.
        """

    def record_version(self, record: Mapping[str, Json]) -> Json:
        """Return the part of a record that changes only when the incident changes.

        By default, returns the whole record. Omit members that differ in every response, such as a
        search score or a remaining time. Otherwise, each read stores all records in the overlap
        again.
        """
        return record

    def longest_window(self, stream: str) -> timedelta | None:  # noqa: ARG002
        """Return how much time one query can cover in addition to `overlap`; None for no limit.

        If this method returns None, one query covers the whole time since the previous read, even
        after a long outage. Return None only if the API can page through any number of records and
        one long query costs the SIEM no more than several short ones.
        """
        longest: timedelta = self.settings.longest_window
        return longest

    async def complete(self, incident: Incident, record: Mapping[str, Json]) -> Incident:  # noqa: ARG002
        """Return the incident with details that the SIEM's list lacks, such as entities.

        Tocsin calls this method only for new versions of incidents. After `TryLater` or
        `Misconfigured`, the read ends, and the next read continues with this incident. After any
        other error, Tocsin stores the incident without details.
        """
        return incident

    async def sample(self, stream: str) -> Sequence[Mapping[str, Any]]:
        """Return up to ten recent records.

        The records are from the last hour or, if there are none, from the last day or week.
        """
        end = floor_to_second(self.tools.clock.now() - self.settings.settle_delay)
        for span in _SAMPLE_SPANS:
            window = Window(end - span, end)
            listing = await self.list_changes(stream, window, None, _SAMPLE_SIZE)
            if listing.records:
                return listing.records[:_SAMPLE_SIZE]
        return ()

    async def read(
        self, stream: str, position: Mapping[str, Any] | None, until: datetime
    ) -> AsyncGenerator[Page, None]:
        """Yield the changes from `position` until `settle_delay` before the time `until`."""
        settings = self.settings
        reader = self._reader(stream)
        end = floor_to_second(until + reader.lead - settings.settle_delay)
        start = until - settings.first_fetch
        cursor = WindowCursor.exactly(start) if position is None else decode_cursor(position)
        if position is None:  # so that an empty first read is not repeated
            yield Page(next_position=cursor.encode())
        async with aclosing(reader.pages(cursor, end, settings.overlap)) as pages:
            async for page in pages:
                yield page

    async def backfill(
        self, stream: str, position: Mapping[str, Any] | None, window: Window
    ) -> AsyncGenerator[Page, None]:
        """Yield the incidents that were last changed in a past window."""
        cursor = WindowCursor.exactly(window.start) if position is None else decode_cursor(position)
        reader, end = self._reader(stream, past=True), ceil_to_second(window.end)
        async with aclosing(reader.pages(cursor, end, SECOND)) as pages:
            async for page in pages:
                cursor = decode_cursor(page.next_position)
                yield page
        if cursor.watermark < end:
            raise TryLater(
                f"the SIEM's clock has reached only {cursor.watermark}, not the end of the window"
            )

    def _reader(self, stream: str, *, past: bool = False) -> WindowReader:
        """Return the reader of a stream, which remembers its failures."""
        key = stream, past
        if key not in self._readers:
            self._readers[key] = WindowReader(self, stream, past=past)
        return self._readers[key]
