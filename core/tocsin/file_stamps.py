"""Stamps of files, by which changes are noticed without reading them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def stamp_file(path: Path) -> object:
    """Return a value that changes when a file is written or replaced; None without the file."""
    with suppress(OSError):
        status = path.stat()
        return status.st_mtime_ns, status.st_ino, status.st_size
    return None
