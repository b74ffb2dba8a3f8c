"""Base class for providers that read files."""

from __future__ import annotations

import asyncio
import contextlib
from abc import abstractmethod
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from pydantic import Field
from typing_extensions import TypeVar

from tocsin import (
    Covered,
    Duration,
    Entity,
    Health,
    Incident,
    LocalPath,
    Page,
    Provider,
    SiemEvent,
    TryLater,
    Window,
)
from tocsin_connectors.siem.files.batch import WindowedParser
from tocsin_connectors.siem.files.health import check_files
from tocsin_connectors.siem.files.position import decode_positions, encode_positions
from tocsin_connectors.siem.files.reader import SETTLE_TIME, FileReader
from tocsin_connectors.siem.files.search import FileSearch, FileSearchQuery

T = TypeVar("T")


ProviderSettings = TypeVar("ProviderSettings", bound="FileProvider.Settings", default=Any)


class FileProvider(Provider[ProviderSettings]):
    """Base class for providers whose records are lines in files. Subclasses parse the records."""

    class Settings(Provider.Settings):
        """Settings shared by all file providers."""

        path: LocalPath = Field(
            description="The file to read, or a glob pattern. Tocsin also reads the rotated "
            "versions of each file.",
        )
        first_fetch: Duration = Field(
            default=timedelta(hours=24),
            le=timedelta(days=36500),
            description="On the first read, Tocsin skips files that were last modified longer ago "
            "than this.",
        )
        poll_interval: Duration = Field(
            default=timedelta(seconds=5),
            gt=timedelta(0),
            description="How long Tocsin waits between two reads.",
        )

    permissions: ClassVar[tuple[str, ...]] = ("read access to the files and their folders",)

    @abstractmethod
    def to_incident(self, record: dict[str, Any]) -> Incident | None:
        """Return the record's incident, or None for other kinds of record.

        Raises ValueError with the reason if the record is invalid.
        """

    def explain_skip(self, record: dict[str, Any]) -> str | None:  # noqa: ARG002 - for subclasses
        """Return why a record without an incident is skipped, once per reason; else None."""
        return None

    @abstractmethod
    def event_time(self, record: dict[str, Any]) -> datetime:
        """Return the time of the record. Raises ValueError if it has none."""

    @abstractmethod
    def to_event(self, record: dict[str, Any]) -> SiemEvent | None:
        """Return the event of the record, or None if it has none.

        Raises ValueError with the reason if the record is invalid.
        """

    def fold(self, incidents: list[Incident]) -> tuple[Incident, ...]:
        """Return the incidents of one page unchanged."""
        return tuple(incidents)

    async def check(self) -> Health:
        """Return the number of files, and every reason why a file cannot be read."""
        return await asyncio.to_thread(check_files, self.settings.path)

    async def read(
        self,
        stream: str,  # noqa: ARG002 - there is only one
        position: Mapping[str, Any] | None,
        until: datetime,
    ) -> AsyncGenerator[Page, None]:
        """Yield the records written since `position`.

        Raises `TryLater` after everything readable, naming the files that could not be read, and
        `Refused` for a position of another version or too many files.
        """
        following = FileReader(self.settings.path, self, decode_positions(position), until)
        skip_before = until - self.settings.first_fetch if position is None else None
        async with aclosing(_iterate_in_thread(following.pages(skip_before))) as pages:
            async for page in pages:
                yield page

    async def backfill(
        self, stream: str, position: Mapping[str, Any] | None, window: Window
    ) -> AsyncGenerator[Page, None]:
        """Yield the incidents of the window from all existing files.

        Files last written before the window are not opened. Invalid records have no time, and are
        rejected wherever they are. The last page accounts for the window. Raises `TryLater` before
        it if a file cannot be read or is being rotated.
        """
        now, parser = self.tools.clock.now(), WindowedParser(self, window)
        # File times are coarser than record times
        since = window.start - SETTLE_TIME
        following = FileReader(self.settings.path, parser, decode_positions(position), now, since)
        covered = Covered(source=stream, start=window.start, end=window.start)
        position = encode_positions([]) if position is None else position
        async with aclosing(_iterate_in_thread(following.pages())) as pages:
            async for page in pages:
                position = page.next_position
                lost = (part for part in page.covered if part.lost)
                yield replace(page, covered=(covered, *lost))
        if following.waits:
            raise TryLater("a file is being rotated, copied or compressed", after=SETTLE_TIME)
        yield Page(next_position=position, covered=(replace(covered, end=window.end),))

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield the latest records of the window that name the entity, from all files.

        Raises `TryLater` after the results if a file is missing or unreadable, or if the search
        limits were reached.
        """
        sought = FileSearchQuery(entity, window, limit)
        search = FileSearch(self.settings.path, self, sought, self.tools.clock)
        async with aclosing(_iterate_in_thread(search.search_blocks())) as steps:
            async for _ in steps:
                pass
        for event in search.found:
            yield event
        if search.problems:
            raise TryLater("; ".join(search.problems))


async def _iterate_in_thread(made: Generator[T, None, None]) -> AsyncGenerator[T, None]:
    """Yield the items of a generator that runs in a thread."""
    try:
        while one := await asyncio.to_thread(next, made, None):
            yield one
    finally:
        # If canceled while the thread runs it, it cannot be closed; it ends with the thread.
        with contextlib.suppress(ValueError):
            made.close()
