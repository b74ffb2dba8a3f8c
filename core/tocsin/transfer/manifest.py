"""Backups in a folder, each a folder of its own with a manifest and one file per table."""

from __future__ import annotations

import hmac
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import orjson

from tocsin.clock import isoformat
from tocsin.errors import OperatorError
from tocsin.store import Head
from tocsin.transfer.files import BackupKey
from tocsin.transfer.layout import TableLayout

FORMAT = 1
NAME = "manifest.json"
PARTIAL = ".partial"
"""The end of the name of a backup that is being made."""
_PREFIX = "tocsin-"


@dataclass(frozen=True, slots=True)
class TableFile:
    """One table in a backup."""

    layout: TableLayout
    rows: int
    digest: str
    """Checksum of its rows, whatever their order."""
    file: str
    sha256: str
    """Checksum of the file."""
    size: int
    """Bytes of the file."""

    @classmethod
    def of_json(cls, entry: dict[str, Any]) -> Self:
        """Return the table from its stored form."""
        layout = TableLayout.of_json(entry["name"], entry["columns"])
        if entry["file"] != Path(entry["file"]).name:
            raise ValueError("a file in another directory")
        return cls(layout, **{name: entry[name] for name in cls.__slots__[1:]})

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        facts = {name: getattr(self, name) for name in self.__slots__[1:]}
        return {"name": self.layout.name, "columns": self.layout.to_json(), **facts}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a backup holds."""

    name: str
    created_at: str
    version: str
    """The version of Tocsin that made it."""
    schema: str
    """The revision of the schema."""
    database: str
    """The kind of database."""
    database_id: str
    """The ID of the database's first epoch."""
    head: Head
    key_check: str
    """A value that only the encryption key of the database yields."""
    salt: str | None
    """Salt of the keys of an encrypted backup; None if it is not encrypted."""
    tables: Sequence[TableFile] = ()
    earlier_key_checks: Sequence[str] = ()
    """The same of earlier encryption keys that values still need."""
    mac: str | None = None
    """Authentication code of the manifest of an encrypted backup."""
    folder: Path = field(default=Path(), compare=False)

    @property
    def rows(self) -> int:
        """The rows of all tables."""
        return sum(table.rows for table in self.tables)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(table.size for table in self.tables)

    def open_key(self, secret: bytes | None) -> BackupKey | None:
        """Return the key of an encrypted backup; raises OperatorError where it does not fit."""
        if self.salt is None:
            return None
        if secret is None:
            raise OperatorError(
                f"{self.name} is encrypted: set TOCSIN_BACKUP_KEY_FILE to the file with its key"
            )
        key = BackupKey(secret, bytes.fromhex(self.salt))
        if not hmac.compare_digest(self.mac or "", self._authenticate(key)):
            raise OperatorError(
                f"{self.name}: the backup was encrypted with another key, or its manifest was "
                "changed"
            )
        return key

    def _authenticate(self, key: BackupKey) -> str:
        content = orjson.dumps(self._to_json() | {"mac": None}, option=orjson.OPT_SORT_KEYS)
        return hmac.digest(key.derive("manifest"), content, "sha256").hex()

    def _to_json(self) -> dict[str, Any]:
        facts = {name: getattr(self, name) for name in self.__slots__ if name != "folder"}
        tables = [table.to_json() for table in self.tables]
        return {"format": FORMAT, **facts, "head": asdict(self.head), "tables": tables}

    def save(self, folder: Path, key: BackupKey | None) -> Self:
        """Store the manifest in a folder, and return it as stored."""
        stored = self if key is None else replace(self, mac=self._authenticate(key))
        content = orjson.dumps(stored._to_json(), option=orjson.OPT_INDENT_2)  # noqa: SLF001 - its own
        (folder / NAME).write_bytes(content + b"\n")
        return stored


def load_manifest(folder: Path) -> Manifest:
    """Return the manifest in a folder; raises OperatorError where there is none."""
    path = folder / NAME
    try:
        stored = orjson.loads(path.read_bytes())
        if stored["format"] != FORMAT:
            raise OperatorError(
                f"{path}: found format {stored['format']}, but this version of Tocsin supports "
                f"{FORMAT}"
            )
        known = set(Manifest.__slots__) - {"folder"}
        facts = {name: value for name, value in stored.items() if name in known}
        facts |= {
            "head": Head(**stored["head"]),
            "tables": [TableFile.of_json(entry) for entry in stored["tables"]],
            "folder": folder,
        }
        return Manifest(**facts)
    except FileNotFoundError:
        raise OperatorError(f"no backup at {folder}; run `tocsin backup list`") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OperatorError(f"{path}: the manifest is damaged: {error!r}") from error


def name_backup(now: datetime) -> str:
    """Return the name of a backup that is made now."""
    moment = isoformat(now)
    return _PREFIX + moment.replace("-", "").replace(":", "").replace(".", "-")


def find_backup(folder: Path, name: str) -> Manifest:
    """Return a backup by its name in the folder, or by its path; raises OperatorError."""
    path = Path(name)
    is_path = path.is_absolute() or len(path.parts) > 1
    return load_manifest(path if is_path else folder / name)


def list_backups(folder: Path) -> list[Manifest]:
    """Return the complete backups in a folder, the oldest first; raises OperatorError."""
    found = (path.parent for path in folder.glob(f"{_PREFIX}*/{NAME}"))
    complete = (path for path in found if not path.name.endswith(PARTIAL))
    backups = [load_manifest(path) for path in complete]
    return sorted(backups, key=lambda backup: (backup.created_at, backup.name))


def remove_old(folder: Path, database_id: str, keep: int) -> list[str]:
    """Remove the oldest backups of a database but for `keep`, and return their names."""
    ours = [backup for backup in list_backups(folder) if backup.database_id == database_id]
    removed = ours[:-keep]
    for backup in removed:
        # a folder without a manifest is no backup, even if the rest cannot be removed
        (backup.folder / NAME).unlink()
        shutil.rmtree(backup.folder)
    return [backup.name for backup in removed]
