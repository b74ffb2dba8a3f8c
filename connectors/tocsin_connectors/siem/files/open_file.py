"""Open file: recognition of its content, and reading."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType
from typing import Self

from tocsin_connectors.siem.files.discovery import FileState
from tocsin_connectors.siem.files.lines import LineStream
from tocsin_connectors.siem.files.position import KIB, FilePosition, compute_digest

CHUNK_SIZE = 1024 * KIB

_DAMAGE_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile)


class OpenFile:
    """Open file, decompressed while reading if its name ends in `.gz`."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "rb")  # noqa: PTH123, SIM115 - closed by __exit__
        self.state = FileState.of(path, os.fstat(self._file.fileno()))
        self.compressed = path.endswith(".gz")
        self._stream: io.BufferedReader | gzip.GzipFile = (
            gzip.GzipFile(fileobj=self._file) if self.compressed else self._file
        )
        self.damage: str | None = None
        """Reason why the compressed content ended early, once it was read that far."""
        self._asked_before: dict[int, bytes] = {}
        self.head = self._slice(0, KIB)
        """First KiB of the content."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stream.close()
        self._file.close()

    def holds(self, known: FilePosition) -> bool:
        """Return whether this file has the content of a position, up to its offset."""
        if len(self.head) < known.head_length or not self._has_head(known):
            return False
        before = self._read_before(known.offset)
        return len(before) == min(known.offset, KIB) and compute_digest(before) == known.tail

    def may_grow_into(self, known: FilePosition) -> bool:
        """Return whether this file may be the beginning of a copy of the content of a position."""
        if len(self.head) >= known.head_length and not self._has_head(known):
            return False
        return known.offset > 0 and not self._slice(known.offset - 1, 1)

    def lines(
        self, offset: int, *, in_long_line: bool = False, partial: bool = False
    ) -> LineStream:
        """Return the lines from `offset` up to the size of the file when it was opened.

        With `partial`, a last line without a newline counts; it always counts if the end of
        compressed content shows that nothing follows.
        """
        recent = self._read_before(offset)
        self.damage = None
        with contextlib.suppress(*_DAMAGE_ERRORS):
            self._stream.seek(offset)
        return LineStream(
            self._chunks(offset),
            offset,
            recent,
            in_long_line=in_long_line,
            takes_partial=lambda: self.damage is None if self.compressed else partial,
        )

    def position_after(self, lines: LineStream, *, finished: bool) -> FilePosition:
        """Return the position after the lines that were returned."""
        return FilePosition(
            state=self.state,
            offset=lines.end,
            head=compute_digest(self.head),
            head_length=len(self.head),
            tail=compute_digest(lines.recent),
            in_long_line=lines.in_long_line,
            finished=finished,
        )

    def position_at_end(self) -> FilePosition:
        """Return the position at the end of the file."""
        lines = self.lines(0 if self.compressed else self.state.size, partial=True)
        for _ in lines:
            pass
        known = self.position_after(lines, finished=True)
        return replace(known, in_long_line=known.offset > 0 and not lines.recent.endswith(b"\n"))

    def _has_head(self, known: FilePosition) -> bool:
        return compute_digest(self.head[: known.head_length]) == known.head

    def _read_before(self, offset: int) -> bytes:
        # Reading it again would rewind compressed content to its beginning.
        if offset not in self._asked_before:
            start = max(0, offset - KIB)
            self._asked_before[offset] = self._slice(start, offset - start)
        return self._asked_before[offset]

    def _slice(self, start: int, length: int) -> bytes:
        try:
            self._stream.seek(start)
        except _DAMAGE_ERRORS:
            return b""
        content = b""
        while missing := length - len(content):
            if not (part := self._read(missing)):
                break
            content += part
        return content

    def _chunks(self, offset: int) -> Iterator[bytes]:
        left = sys.maxsize if self.compressed else self.state.size - offset
        while left > 0 and (chunk := self._read(min(CHUNK_SIZE, left))):
            left -= len(chunk)
            yield chunk

    def _read(self, length: int) -> bytes:
        try:
            return self._stream.read1(length)
        except _DAMAGE_ERRORS as error:
            self.damage = str(error)
            return b""
