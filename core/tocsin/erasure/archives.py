"""Erasure from the files of the archive."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import orjson
from sqlalchemy import Connection

from tocsin.store import Redactor, lock_exclusively


def list_archives(folder: Path | None) -> list[Path]:
    """Return the files of the archive."""
    return [] if folder is None else sorted(folder.glob("*.jsonl.gz"))


def erase_file(connection: Connection, path: Path, redactor: Redactor, *, dry_run: bool) -> int:
    """Erase from one file, and return the number of lines that changed.

    Retention does not write meanwhile. The file is replaced at once. Raises OSError on failure.
    """
    lock_exclusively(connection, "the archive")
    content = gzip.decompress(path.read_bytes())
    lines, changed = [], 0
    for line in content.splitlines():
        value = orjson.loads(line)
        redacted = redactor.redact(value)
        changed += redacted is not value
        lines.append(orjson.dumps(redacted) if redacted is not value else line)
    if changed and not dry_run:
        _replace(path, gzip.compress(b"".join(line + b"\n" for line in lines)))
    return changed


def _replace(path: Path, content: bytes) -> None:
    new = path.with_name(path.name + ".new")
    new.touch(mode=0o600)
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
