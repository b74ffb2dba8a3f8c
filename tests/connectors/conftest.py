"""Shared fixtures: a manual clock, and a file provider of numbered records with its stored feed."""

from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Callable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
import structlog

from tocsin import (
    Covered,
    Entity,
    EntityKind,
    HttpClient,
    Incident,
    Page,
    Provider,
    Rejected,
    Severity,
    SiemEvent,
    Tools,
    Window,
)
from tocsin.clock import Clock, SystemClock
from tocsin.testing import ManualClock
from tocsin_connectors.siem.files import FileProvider, reader
from tocsin_connectors.siem.files.open_file import OpenFile

START = datetime(2024, 11, 20, 12, tzinfo=UTC)


def tools(clock: Clock) -> Tools:
    http = cast(HttpClient, None)
    return Tools(name="test", http=http, clock=clock, log=structlog.get_logger())


class Numbers(FileProvider):
    """Every record with a number is an incident."""

    def to_incident(self, record: dict[str, Any]) -> Incident | None:
        if "n" not in record:
            return None
        return Incident(
            external_id=str(record["n"]),
            title="",
            severity=Severity.LOW,
            occurred_at=START + timedelta(minutes=record["n"]),
        )

    def event_time(self, record: dict[str, Any]) -> datetime:
        return START + timedelta(minutes=record["n"])

    def to_event(self, record: dict[str, Any]) -> SiemEvent | None:
        return SiemEvent(
            external_id=str(record["n"]),
            occurred_at=self.event_time(record),
            summary=f"number {record['n']}",
            entities=tuple(Entity(EntityKind(kind), item) for kind, item in record.get("of", ())),
        )


class Feed:
    """Reads like the core does, and keeps what it got."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.position: dict[str, Any] | None = None
        self.past: dict[str, Any] | None = None
        self.pages: list[Page] = []

    async def read(
        self, later: timedelta = timedelta(0), *, at: datetime | None = None, most: int = 10_000
    ) -> list[Page]:
        pages: list[Page] = []
        until = (at or datetime.now(UTC)) + later
        async with aclosing(self.provider.read("changed", self.position, until)) as reading:
            async for page in reading:
                pages.append(page)
                self.pages.append(page)
                self.position = orjson.loads(orjson.dumps(page.next_position))
                if len(pages) >= most:
                    break
        return pages

    async def backfill(self, window: Window, *, most: int = 10_000) -> list[Page]:
        """Go on with the backfill of a window, apart from what `read` has read."""
        pages: list[Page] = []
        reading = self.provider.backfill("changed", self.past, window)
        async with aclosing(reading):
            async for page in reading:
                pages.append(page)
                self.pages.append(page)
                self.past = orjson.loads(orjson.dumps(page.next_position))
                if len(pages) >= most:
                    break
        return pages

    @property
    def ids(self) -> list[str]:
        return [incident.external_id for page in self.pages for incident in page.incidents]

    @property
    def rejected(self) -> list[Rejected]:
        return [rejected for page in self.pages for rejected in page.rejected]

    @property
    def lost(self) -> list[Covered]:
        return [covered for page in self.pages for covered in page.covered if covered.lost]

    @property
    def passed_over(self) -> list[Covered]:
        return [covered for page in self.pages for covered in page.covered if covered.passed_over]


def make_feed(
    path: Path | str,
    kind: type[Provider] = Numbers,
    clock: Clock | None = None,
    **settings: Any,
) -> Feed:
    made = kind.Settings.model_validate({"plugin": "test", "path": str(path)} | settings)
    return Feed(kind(made, tools(clock or SystemClock())))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(name="make_feed")
def make_feed_fixture() -> Callable[..., Feed]:
    return make_feed


@pytest.fixture
def eve(tmp_path: Path) -> Path:
    """The path of a live file, not written yet."""
    return tmp_path / "eve.json"


@pytest.fixture
def feed(eve: Path) -> Feed:
    return make_feed(eve)


@pytest.fixture
def write() -> Callable[..., None]:
    """Append one record for each number."""

    def append(path: Path, *numbers: int) -> None:
        with path.open("a") as file:
            file.writelines(f'{{"n":{number}}}\n' for number in numbers)

    return append


@pytest.fixture
def compress() -> Callable[..., Path]:
    """Compress a file as gzip does, and return the path of the result."""

    def gzipped(path: Path, *, keep: bool = False) -> Path:
        compressed = path.with_name(path.name + ".gz")
        compressed.write_bytes(gzip.compress(path.read_bytes()))
        os.utime(compressed, ns=(0, path.stat().st_mtime_ns))
        if not keep:
            path.unlink()
        return compressed

    return gzipped


@pytest.fixture
def no_access(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Callable[[], None]]:
    """Take the right to read a file, even from root, and return what gives it back."""

    def take(path: Path) -> Callable[[], None]:
        class Guarded(OpenFile):
            def __init__(self, asked: str) -> None:
                if asked == str(path):
                    raise PermissionError(errno.EACCES, "Permission denied", asked)
                super().__init__(asked)

        monkeypatch.setattr(reader, "OpenFile", Guarded)
        monkeypatch.setattr(os, "access", lambda asked, mode: asked != str(path))
        return monkeypatch.undo

    return take
