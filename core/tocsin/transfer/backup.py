"""Creation and verification of backups."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from sqlalchemy import Connection

from tocsin.clock import isoformat
from tocsin.credentials import EncryptionKeyState, Vault, load_encryption_keys
from tocsin.errors import OperatorError
from tocsin.store import (
    Database,
    check_schema,
    get_newest_revision,
    load_epochs,
    load_head,
    make_private_folder,
)
from tocsin.transfer.files import BackupKey, hash_file, read_lines, write_lines
from tocsin.transfer.layout import TableLayout, list_layouts
from tocsin.transfer.manifest import PARTIAL, Manifest, TableFile, name_backup
from tocsin.transfer.rows import Row, RowDigest, decode_row, encode_row, read_rows

_SALT_BYTES = 16
_KEY_CHECK = "backup check"
_PREVIOUS = EncryptionKeyState.PREVIOUS
Progress = Callable[[str, int], None]
"""Called with the name of a table and the number of rows that are done."""


def list_key_checks(connection: Connection, vault: Vault) -> list[str]:
    """Return the values by which the encryption keys that a database needs are known again.

    The current key is first.
    """
    needed = {key.id for key in load_encryption_keys(connection) if key.state is _PREVIOUS}
    earlier = [id_ for id_ in vault.key_ids if id_ in needed]
    return [check_key(vault, key_id) for key_id in (vault.current_id, *earlier)]


def check_key(vault: Vault, key_id: str) -> str:
    """Return the value by which an encryption key is known again."""
    return vault.derive_from(key_id, _KEY_CHECK).hex()


@dataclass(frozen=True, slots=True)
class BackupMaker:
    """Makes backups of one database in one folder."""

    folder: Path
    vault: Vault
    secret: bytes | None = None
    """The key that encrypts them; None for none."""

    async def create(self, database: Database, now: datetime, progress: Progress) -> Manifest:
        """Make a backup of one moment, while others use the database; raises OperatorError."""
        await check_schema(database, is_exact=True)
        make_private_folder(self.folder)
        name = name_backup(now)
        with _open_draft(self.folder, name) as draft:
            return await database.snapshot(self._write, draft, name, now, progress)

    def _write(
        self, connection: Connection, draft: Path, name: str, now: datetime, progress: Progress
    ) -> Manifest:
        key = None
        if self.secret is not None:
            key = BackupKey(self.secret, secrets.token_bytes(_SALT_BYTES))
        head, first = load_head(connection), load_epochs(connection)[0]
        current, *earlier = list_key_checks(connection, self.vault)
        tables = [
            _write_table(connection, draft, layout, key, progress) for layout in list_layouts()
        ]
        manifest = Manifest(
            name=name,
            created_at=isoformat(now),
            version=version("tocsin"),
            schema=get_newest_revision(),
            database=connection.dialect.name,
            database_id=first.id,
            head=head,
            key_check=current,
            earlier_key_checks=earlier,
            salt=None if key is None else key.salt.hex(),
            tables=tables,
            folder=self.folder / name,
        )
        return manifest.save(draft, key)


@contextmanager
def _open_draft(folder: Path, name: str) -> Iterator[Path]:
    """Give a folder that gets its name once it is complete; raises OperatorError."""
    draft, final = folder / f"{name}{PARTIAL}", folder / name
    if final.exists():
        raise OperatorError(f"{final}: a backup with this time already exists")
    try:
        draft.mkdir(mode=0o700)
        yield draft
        _flush_folder(draft)
        draft.rename(final)
        _flush_folder(folder)
    except OSError as error:
        raise OperatorError(f"{draft}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_table(
    connection: Connection,
    folder: Path,
    layout: TableLayout,
    key: BackupKey | None,
    progress: Progress,
) -> TableFile:
    path = folder / f"{layout.name}.jsonl.gz{'' if key is None else '.aes'}"
    digest, encode = RowDigest(layout, derive_digest_key(key)), encode_row(layout)
    with write_lines(path, key) as lines:
        for row in read_rows(connection, layout):
            digest.add(row)
            lines.write(encode(row))
            progress(layout.name, digest.count)
    size = path.stat().st_size
    return TableFile(layout, digest.count, digest.value, path.name, hash_file(path), size)


def derive_digest_key(key: BackupKey | None) -> bytes:
    """Return the key of the checksums of rows, empty if the backup is not encrypted."""
    return b"" if key is None else key.derive("checksums of rows")


def read_table(manifest: Manifest, table: TableFile, key: BackupKey | None) -> Iterator[Row]:
    """Yield the rows of a table in a backup; raises OperatorError where they are damaged."""
    digest = RowDigest(table.layout, derive_digest_key(key))
    decode = decode_row(table.layout)
    path = manifest.folder / table.file
    with read_lines(path, key) as lines:
        for line in lines:
            row = decode(line)
            digest.add(row)
            yield row
    if (digest.count, digest.value) != (table.rows, table.digest):
        raise OperatorError(
            f"{path}: found {digest.count} rows (checksum {digest.value}), expected {table.rows} "
            f"(checksum {table.digest})"
        )


def verify_backup(manifest: Manifest, secret: bytes | None, progress: Progress) -> None:
    """Read all of a backup; raises OperatorError where it is damaged or the key does not fit."""
    key = manifest.open_key(secret)
    for table in manifest.tables:
        path = manifest.folder / table.file
        if (found := hash_file(path)) != table.sha256:
            raise OperatorError(
                f"{path}: the file is damaged: its SHA-256 is {found}, expected {table.sha256}"
            )
        for count, _ in enumerate(read_table(manifest, table, key), 1):
            progress(table.layout.name, count)


def check_vault(manifest: Manifest, vault: Vault) -> None:
    """Raise OperatorError where an encryption key is not the one of the database backed up."""
    known = {check_key(vault, key_id) for key_id in vault.key_ids}
    if not known.issuperset([manifest.key_check, *manifest.earlier_key_checks]):
        raise OperatorError(
            f"{manifest.name}: the configured encryption key does not match this backup; set "
            "TOCSIN_ENCRYPTION_KEY or TOCSIN_ENCRYPTION_KEY_FILE to the key of that database, or "
            "to both keys if the key was being rotated. "
            "Without the key, secrets cannot be decrypted, and the audit log cannot be verified"
        )
