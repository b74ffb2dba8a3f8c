"""Discovery of files: the configured ones and their rotated siblings."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

_NUMBERED = re.compile(r"(.+?)[.-]\d[\d.\-_T]*")  # eve.json.1, eve.json-20241101
_DATED = re.compile(r"(.+?)-\d[\d.\-_T]{7,}(\.[^.]+)")  # eve-20241101.json


@dataclass(frozen=True, slots=True)
class FileState:
    """Metadata of a file. `modified` is in nanoseconds since the epoch."""

    path: str
    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, path: Path | str, status: os.stat_result) -> FileState:
        """Return the metadata in `status` of the file at `path`."""
        return cls(str(path), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode. A file keeps them when it is renamed; a later file may reuse them."""
        return self.device, self.inode

    def is_older_than(self, moment: datetime) -> bool:
        """Return whether the last write was before this time."""
        return self.modified < moment.timestamp() * 1e9

    def is_unchanged(self, later: FileState) -> bool:
        """Return whether `later` is the same file without new content, whatever its name."""
        return (self.identity, self.size, self.modified) == (
            later.identity,
            later.size,
            later.modified,
        )


@dataclass(frozen=True, slots=True)
class FileCandidate:
    """File to read. `live` means that its writer still uses it, judging by its name."""

    state: FileState
    live: bool


@dataclass(slots=True)
class FileListing:
    """Files, oldest first, and messages about missing ones."""

    files: list[FileCandidate] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def identities(self) -> set[tuple[int, int]]:
        """Identities of all files."""
        return {found.state.identity for found in self.files}


def find_files(pattern: str, since: datetime | None = None) -> FileListing:
    """Return the files that match a path or a glob, with their rotated siblings.

    Files that were not written to `since` are omitted.
    """
    findings = FileListing()
    bases = _find_bases(pattern)
    if not bases:
        findings.missing.append(f"no file matches {pattern} yet")
    rotated = set(_find_rotated(bases, findings.missing))
    files: dict[tuple[int, int], FileCandidate] = {}
    for path in [*(base for base in bases if base not in rotated), *sorted(rotated)]:
        state = _get_state(path, findings.missing, required=path in bases)
        if state and not (since and state.is_older_than(since)):
            live = path not in rotated and path.suffix != ".gz"
            files.setdefault(state.identity, FileCandidate(state, live=live))
    findings.files = sorted(files.values(), key=lambda file: (file.state.modified, file.state.path))
    return findings


def _find_bases(pattern: str) -> list[Path]:
    if os.path.lexists(pattern) or not glob.has_magic(pattern):
        return [Path(pattern)]
    # Path.glob takes no absolute patterns.
    return [Path(match) for match in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207


def _find_rotated(bases: list[Path], missing: list[str]) -> Iterator[Path]:
    for folder in sorted({base.parent for base in bases}):
        names = {base.name for base in bases if base.parent == folder}
        try:
            entries = os.listdir(folder)  # noqa: PTH208 - names are all that is needed
        except OSError as error:
            missing.append(f"{folder}: {error.strerror}")
            continue
        yield from (
            folder / entry for entry in entries if not names.isdisjoint(_list_origins(entry))
        )


def _list_origins(name: str) -> Iterator[str]:
    """Yield the names that a file may have had before rotation renamed it."""
    plain = name.removesuffix(".gz")
    if plain != name:
        yield plain
    if match := _NUMBERED.fullmatch(plain):
        yield match[1]
    if match := _DATED.fullmatch(plain):
        yield match[1] + match[2]


def _get_state(path: Path, missing: list[str], *, required: bool) -> FileState | None:
    try:
        status = path.stat()
    except OSError as error:
        # A sibling may be renamed or removed by rotation between the listing and this moment.
        if required or not isinstance(error, FileNotFoundError):
            missing.append(f"{path}: {error.strerror}")
        return None
    if stat.S_ISREG(status.st_mode):
        return FileState.of(path, status)
    if required:
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        missing.append(f"{path} is {kind}")
    return None
