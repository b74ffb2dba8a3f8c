"""Heads of databases, stored in a file outside the databases."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from tocsin.clock import isoformat
from tocsin.errors import OperatorError
from tocsin.store.epochs import Epoch, Head

NAME = "head.json"
_HEAD = tuple(Head.__slots__)


@dataclass(frozen=True, slots=True)
class StoredHead:
    """A head in the file."""

    location: str
    """Where the database was, without credentials."""
    database: str
    """The ID of the database's first epoch."""
    head: Head
    stored_at: str
    """The time at which the head was stored, in ISO 8601."""


class HeadFile:
    """The file `head.json` in the data directory, as it concerns the database at one place.

    It holds one head for each database that the directory was used with. A database is known by its
    epochs, wherever it is, and by its place, whatever it holds.
    """

    def __init__(self, folder: Path, location: str) -> None:
        self.path = folder / NAME
        self._location = location

    def load(self, history: Collection[Epoch]) -> list[StoredHead]:
        """Return the heads that concern a database with these epochs at this place.

        Raises OperatorError where the file cannot be read.
        """
        return [stored for stored in self._load() if self._concerns(stored, history)]

    def save(self, head: Head, history: Collection[Epoch], now: datetime) -> None:
        """Store the head, durably, in place of those that `load` returns; raises OSError."""
        others = [stored for stored in self._load() if not self._concerns(stored, history)]
        first = min(history, key=lambda epoch: epoch.number)
        ours = StoredHead(self._location, first.id, head, isoformat(now))
        content = {"databases": [_represent(stored) for stored in (*others, ours)]}
        _replace(self.path, orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")

    def _concerns(self, stored: StoredHead, history: Collection[Epoch]) -> bool:
        ids = {epoch.id for epoch in history}
        is_known = stored.database in ids or stored.head.epoch_id in ids
        return is_known or stored.location == self._location

    def _load(self) -> list[StoredHead]:
        try:
            return list(_parse(self.path.read_bytes()))
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise OperatorError(
                f"{self.path}: cannot be read ({error!r}). Tocsin uses this file to detect "
                "whether the database was rolled back. Restore the file from a backup, or remove "
                "it if you are sure that the database is the latest one"
            ) from error


def _parse(content: bytes) -> Iterator[StoredHead]:
    for entry in orjson.loads(content)["databases"]:
        head = Head(**{name: entry[name] for name in _HEAD})
        if not all(isinstance(number, int) for number in (head.incident_number, head.epoch)):
            raise ValueError("numbers expected")
        yield StoredHead(entry["location"], entry["database"], head, entry["stored_at"])


def _represent(stored: StoredHead) -> dict[str, Any]:
    return {
        "location": stored.location,
        "database": stored.database,
        **asdict(stored.head),
        "stored_at": stored.stored_at,
    }


def _replace(path: Path, content: bytes) -> None:
    """Replace the file in one step; after a power failure it is the old one or the new one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}")  # nodes may share the directory
    try:
        with open(new, "wb", opener=_open_private) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError:
        with suppress(OSError):
            new.unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
