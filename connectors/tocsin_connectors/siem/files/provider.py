"""What a provider that follows files derives from."""

from __future__ import annotations

import asyncio
import contextlib
from abc import abstractmethod
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, TypeVar

from pydantic import Field

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
from tocsin_connectors.siem.files.event_search import FileSearch, FileSearchQuery
from tocsin_connectors.siem.files.health import check_files
from tocsin_connectors.siem.files.position import decode_positions, encode_positions
from tocsin_connectors.siem.files.reader import SETTLE_TIME, FileReader

T = TypeVar("T")


class FileProvider(Provider):
    """A provider whose records are the lines of files; derive and say what a record is."""

    class Settings(Provider.Settings):
        """What every provider on files can be told."""

        path: LocalPath = Field(
            description="The file to follow, or a glob; rotated siblings are followed with it.",
        )
        first_fetch: Duration = Field(
            default=timedelta(hours=24),
            le=timedelta(days=36500),
            description="At the very first read, pass over files last written longer ago.",
        )
        poll_interval: Duration = Field(
            default=timedelta(seconds=5),
            gt=timedelta(0),
            description="How long to wait between two reads.",
        )

    permissions: ClassVar[tuple[str, ...]] = ("read access to the files and their folder",)

    @abstractmethod
    def to_incident(self, record: dict[str, Any]) -> Incident | None:
        """Return the record's incident, None if it is of another kind.

        Raises ValueError with the reason for a record that cannot be understood.
        """

    @abstractmethod
    def event_time(self, record: dict[str, Any]) -> datetime:
        """Return when what the record says happened; ValueError where it does not say."""

    @abstractmethod
    def to_event(self, record: dict[str, Any]) -> SiemEvent | None:
        """Return what the record says that happened, None if nothing did.

        Raises ValueError with the reason for a record that cannot be understood.
        """

    def fold(self, incidents: list[Incident]) -> tuple[Incident, ...]:
        """Return the incidents of one page as they are."""
        return tuple(incidents)

    async def check(self) -> Health:
        """Return how many files there are, and every reason why not all of them can be read."""
        return await asyncio.to_thread(check_files, self.settings.path)

    async def read(
        self,
        stream: str,  # noqa: ARG002 - there is only one
        position: Mapping[str, Any] | None,
        until: datetime,
    ) -> AsyncGenerator[Page, None]:
        """Yield what was written since `position`.

        Raises `TryLater`, after everything that could be read, naming what could not, and
        `Refused` for a position that this version did not write or for too many files.
        """
        following = FileReader(self.settings.path, self, decode_positions(position), until)
        skip_before = until - self.settings.first_fetch if position is None else None
        async with aclosing(_iterate_in_thread(following.pages(skip_before))) as pages:
            async for page in pages:
                yield page

    async def backfill(
        self, stream: str, position: Mapping[str, Any] | None, window: Window
    ) -> AsyncGenerator[Page, None]:
        """Yield what happened in the window, out of all the files that there still are.

        A file last written before the window holds nothing of it and is not opened. What cannot
        be understood has no time, and is kept aside wherever it is met. The last page accounts for
        the window. Raises `TryLater` before it where a file cannot be read or is being rotated.
        """
        now, parser = self.tools.clock.now(), WindowedParser(self, window)
        # The times of files are coarser than those of records
        since = window.start - SETTLE_TIME
        following = FileReader(self.settings.path, parser, decode_positions(position), now, since)
        begun = Covered(source=stream, start=window.start, end=window.start)
        position = encode_positions([]) if position is None else position
        async with aclosing(_iterate_in_thread(following.pages())) as pages:
            async for page in pages:
                position = page.next_position
                lost = (part for part in page.covered if part.lost)
                yield replace(page, covered=(begun, *lost))
        if following.waits:
            raise TryLater("a file is being rotated, copied or compressed", after=SETTLE_TIME)
        yield Page(next_position=position, covered=(replace(begun, end=window.end),))

    async def events(
        self, entity: Entity, window: Window, limit: int
    ) -> AsyncGenerator[SiemEvent, None]:
        """Yield the latest records of the window that name the entity, out of all the files.

        Raises `TryLater`, after everything that was found, where a file is missing or cannot be
        read, and where there is more than can be searched in time.
        """
        sought = FileSearchQuery(entity, window, limit)
        search = FileSearch(self.settings.path, self, sought, self.tools.clock)
        async with aclosing(_iterate_in_thread(search.steps())) as steps:
            async for _ in steps:
                pass
        for event in search.found:
            yield event
        if search.problems:
            raise TryLater("; ".join(search.problems))


async def _iterate_in_thread(made: Generator[T, None, None]) -> AsyncGenerator[T, None]:
    """Yield what is made, each in a thread, so that nobody waits for the disk."""
    try:
        while one := await asyncio.to_thread(next, made, None):
            yield one
    finally:
        # Cancelled while the thread is in it, it cannot be closed; it ends with the thread.
        with contextlib.suppress(ValueError):
            made.close()
