"""What a provider that follows files derives from."""

from __future__ import annotations

import asyncio
import contextlib
import os
from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field

from tocsin import Duration, Health, Incident, LocalPath, Page, Provider
from tocsin_connectors.siem.files.finding import find
from tocsin_connectors.siem.files.following import Following
from tocsin_connectors.siem.files.known import decode


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

    @abstractmethod
    def to_incident(self, record: dict[str, Any]) -> Incident | None:
        """Return the record's incident, None if it is of another kind.

        Raises ValueError with the reason for a record that cannot be understood.
        """

    def fold(self, incidents: list[Incident]) -> tuple[Incident, ...]:
        """Return the incidents of one page as they are."""
        return tuple(incidents)

    async def check(self) -> Health:
        """Return how many files there are, and which are missing or not readable."""
        return await asyncio.to_thread(self._check)

    def _check(self) -> Health:
        findings = find(self.settings.path)
        paths = [found.state.path for found in findings.files]
        problems = [f"{path} is not readable by this user" for path in paths if not _readable(path)]
        return Health(
            detail=f"{len(paths)} files at {self.settings.path}",
            problems=(*findings.missing, *problems),
        )

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
        following = Following(self.settings.path, self, decode(position), until)
        skip_before = until - self.settings.first_fetch if position is None else None
        pages = following.pages(skip_before)
        try:
            while page := await asyncio.to_thread(next, pages, None):
                yield page
        finally:
            # Cancelled while the thread is in it, it cannot be closed; it ends with the thread.
            with contextlib.suppress(ValueError):
                pages.close()


def _readable(path: str) -> bool:
    return os.access(path, os.R_OK)
