"""Archive of removed records: per kind and day, one compressed, append-only file of JSON lines."""

from __future__ import annotations

import gzip
import os
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, BinaryIO

import orjson

_CHUNK = 65_536
_GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class RemovalBatch:
    """Result of removing one batch of old records."""

    removed: int
    go_on_from: Any
    """The position of the next batch; None if nothing is left to remove."""


class Archive:
    """A folder with one file per kind and day; only one process may write to it at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sizes: dict[Path, int] = {}

    def add(self, lines: Iterable[tuple[date, Mapping[str, Any]]], kind: str) -> None:
        """Append each line to the file of its day; returns once they are on the disk.

        Raises OSError if they cannot be stored; some may be stored nevertheless.
        """
        by_day: dict[date, list[bytes]] = defaultdict(list)
        for day, line in lines:
            by_day[day].append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        for day, texts in by_day.items():
            path = self._folder / f"{kind}-{day.isoformat()}.jsonl.gz"
            self._append(path, gzip.compress(b"".join(texts)))

    def _append(self, path: Path, member: bytes) -> None:
        """Append a member to a file of gzip members (RFC 1952 section 2.2)."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        with path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            if size != self._sizes.get(path):
                # a process may have died amid a member, which would hide all that follow
                size = _complete_size(file)
                file.truncate(size)
            file.seek(size)
            file.write(member)
            file.flush()
            os.fsync(file.fileno())
        _flush_folder(self._folder)
        self._sizes[path] = size + len(member)


def _complete_size(file: BinaryIO) -> int:
    """Return the offset after the last complete member of a file."""
    complete = position = file.seek(0)
    member = zlib.decompressobj(_GZIP)
    while chunk := file.read(_CHUNK):
        position += len(chunk)
        while chunk:
            try:
                member.decompress(chunk)
            except zlib.error:
                return complete
            chunk = member.unused_data
            if member.eof:
                complete = position - len(chunk)
                member = zlib.decompressobj(_GZIP)
    return complete


def _flush_folder(folder: Path) -> None:
    """Flush the folder itself, which holds the name of a new file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
