"""Search in files for the latest records that name an entity."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from heapq import heappop, heappush
from itertools import islice
from os import fstat
from typing import Any, BinaryIO, Protocol

from tocsin import Clock, Entity, SiemEvent, Window, parse_json
from tocsin_connectors.siem.files.discovery import FileState, find_files
from tocsin_connectors.siem.files.lines import MAX_LINE_LENGTH
from tocsin_connectors.siem.files.position import KIB
from tocsin_connectors.siem.files.prefilter import build_needles, is_same_entity
from tocsin_connectors.siem.files.reader import SETTLE_TIME

BLOCK_SIZE = 1024 * KIB


def read_blocks(file: BinaryIO, size: int, *, compressed: bool) -> Iterator[bytes]:
    """Yield the content of a file in blocks of whole lines, last block first.

    Compressed content comes in its own order. The remainder of an overlong line, an unfinished
    line, and anything after damaged content are not whole lines.
    """
    if not compressed:
        yield from _read_backwards(file, size)
        return
    with suppress(EOFError, zlib.error, gzip.BadGzipFile), gzip.GzipFile(fileobj=file) as stream:
        yield from _read_forwards(stream)


def _read_backwards(file: BinaryIO, end: int) -> Iterator[bytes]:
    rest = b""  # beginning of the next line to the right
    while end > 0:
        begin = max(0, end - BLOCK_SIZE)
        file.seek(begin)
        block = file.read(end - begin) + rest
        first = block.find(b"\n") + 1 if begin else 0
        is_cut = begin > 0 and first == 0
        rest = (
            b"" if len(block) > MAX_LINE_LENGTH and is_cut else block if is_cut else block[:first]
        )
        yield b"" if is_cut else block[first:]
        end = begin


def _read_forwards(stream: gzip.GzipFile) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read(BLOCK_SIZE):
        block = rest + chunk
        last = block.rfind(b"\n") + 1
        rest = block[last:] if len(block) - last <= MAX_LINE_LENGTH else b""
        yield block[:last]
    yield rest


MAX_SEARCHED_BYTES = 4 * 1024 * 1024 * KIB
MAX_DURATION = timedelta(seconds=90)
MAX_DISORDER = timedelta(minutes=10)
"""Maximum delay between the time of a record and its position in the file."""
_MAX_ROUNDS = 3
_SAMPLED_LINES = 20
_LIMIT_REACHED = (
    f"search limit reached ({MAX_SEARCHED_BYTES // KIB**3} GiB,"
    f" {MAX_DURATION.total_seconds():.0f} seconds): earlier events may be missing"
)


class _Exhausted(Exception):  # noqa: N818 - what has come about
    """Raised when a search reaches its limits."""


class EventParser(Protocol):
    """Parser of records into events."""

    def event_time(self, record: dict[str, Any]) -> datetime:
        """Return the time of the record. Raises ValueError if it has none."""
        ...

    def to_event(self, record: dict[str, Any]) -> SiemEvent | None:
        """Return the record's event, or None. Raises ValueError if the record is invalid."""
        ...


@dataclass(frozen=True, slots=True)
class FileSearchQuery:
    """Query for the latest events of a window that name an entity."""

    entity: Entity
    window: Window
    limit: int


class FileSearch:
    """One search in all files.

    It blocks, so it runs in a thread, one block of a file at a time.
    """

    def __init__(
        self, pattern: str, parser: EventParser, sought: FileSearchQuery, clock: Clock
    ) -> None:
        self.problems: list[str] = []
        """Reasons why the result may be incomplete."""
        self._pattern = pattern
        self._parser = parser
        self._sought = sought
        self._needles = build_needles(sought.entity)
        self._latest = _LatestEvents(sought.limit)
        self._clock = clock
        self._ends_at = clock.now() + MAX_DURATION
        self._bytes_left = MAX_SEARCHED_BYTES
        self._searched: set[tuple[int, int]] = set()

    @property
    def found(self) -> list[SiemEvent]:
        """Events, latest first."""
        return self._latest.events

    def search_blocks(self) -> Generator[bool, None, None]:
        """Search, and yield after each block. Files that are renamed meanwhile are not missed."""
        if not self._sought.entity.value or self._sought.limit < 1:
            return
        try:
            for _ in range(_MAX_ROUNDS):
                findings = find_files(self._pattern, self._sought.window.start - SETTLE_TIME)
                for found in reversed(findings.files):
                    yield from self._try(found.state)
            self.problems += findings.missing
        except _Exhausted:
            self.problems.append(_LIMIT_REACHED)

    def _try(self, state: FileState) -> Iterator[bool]:
        if state.identity in self._searched or state.is_older_than(self._earliest - SETTLE_TIME):
            return
        try:
            yield from self._search(state.path)
        except FileNotFoundError:  # rotated meanwhile: the next round finds its new name
            return
        except OSError as error:
            self._searched.add(state.identity)
            self.problems.append(f"{state.path}: {error.strerror or error}")

    def _search(self, path: str) -> Iterator[bool]:
        compressed = path.endswith(".gz")
        with open(path, "rb") as file:  # noqa: PTH123 - as every file here
            state = FileState.of(path, fstat(file.fileno()))
            if state.identity in self._searched:
                return
            self._searched.add(state.identity)
            for block in read_blocks(file, state.size, compressed=compressed):
                self._bytes_left -= BLOCK_SIZE
                for line in self._candidates(block):
                    self._take(line)
                yield True
                if not compressed and self._is_too_early(block):
                    return
                if self._is_exhausted:
                    raise _Exhausted

    @property
    def _earliest(self) -> datetime:
        """Time before which events cannot be part of the result."""
        return max(self._sought.window.start, self._latest.earliest or self._sought.window.start)

    @property
    def _is_exhausted(self) -> bool:
        return self._bytes_left <= 0 or self._clock.now() >= self._ends_at

    def _is_too_early(self, block: bytes) -> bool:
        """Return whether everything before a block is too early."""
        for line in islice(_split_lines(block), _SAMPLED_LINES):
            with suppress(Exception):  # as in `_event`
                return self._parser.event_time(_parse_record(line)) < self._earliest - MAX_DISORDER
        return False

    def _candidates(self, block: bytes) -> Iterator[bytes]:
        """Yield the lines that may name the entity. Searching is faster than parsing."""
        small = block.lower()
        for needle in self._needles:
            at = small.find(needle)
            while at >= 0:
                begin, end = small.rfind(b"\n", 0, at) + 1, small.find(b"\n", at)
                end = len(small) if end < 0 else end
                yield block[begin:end]
                at = small.find(needle, end + 1)

    def _take(self, line: bytes) -> None:
        event = self._event(line)
        if event and any(is_same_entity(self._sought.entity, found) for found in event.entities):
            self._latest.add(event, line)

    def _event(self, line: bytes) -> SiemEvent | None:
        """Return the event of a line, or None if it is irrelevant or invalid."""
        with suppress(Exception):  # a parser bug must not hide other records
            record = _parse_record(line)
            at = self._parser.event_time(record)
            if at in self._sought.window and at >= self._earliest:
                return self._parser.to_event(record)
        return None


class _LatestEvents:
    """Latest events. A line that is in a file and in its copy counts once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._heap: list[tuple[datetime, bytes, SiemEvent]] = []
        self._digests: set[bytes] = set()

    @property
    def events(self) -> list[SiemEvent]:
        """Events, latest first."""
        return [
            event for *_, event in sorted(self._heap, key=lambda entry: entry[:2], reverse=True)
        ]

    @property
    def earliest(self) -> datetime | None:
        """Time of the earliest event; None while there is room for earlier ones."""
        return self._heap[0][0] if self._heap and len(self._heap) >= self._limit else None

    def add(self, event: SiemEvent, line: bytes) -> None:
        """Add an event if it is one of the latest."""
        digest = blake2b(line.strip(), digest_size=16).digest()
        if digest in self._digests:
            return
        self._digests.add(digest)
        heappush(self._heap, (event.occurred_at, digest, event))
        if len(self._heap) > self._limit:
            self._digests.remove(heappop(self._heap)[1])


def _split_lines(block: bytes) -> Iterator[bytes]:
    begin = 0
    while (end := block.find(b"\n", begin)) >= 0:
        yield block[begin:end]
        begin = end + 1


def _parse_record(line: bytes) -> dict[str, Any]:
    record: dict[str, Any] = parse_json(line)
    return record
