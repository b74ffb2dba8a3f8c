"""Encryption of secrets at rest (Fernet) with a key that is never in the database."""

from __future__ import annotations

import hmac
import os
import secrets
from base64 import urlsafe_b64decode
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from sqlalchemy import Connection, select

from tocsin.errors import OperatorError
from tocsin.settings import Settings
from tocsin.store import Database, is_sqlite, make_private_folder, parse_url, sqlite_file
from tocsin.store.tables import signing_keys

KEY_FILE = "encryption.key"
_VARIABLE = "TOCSIN_ENCRYPTION_KEY"
_MAKE = "python3 -c 'import base64, os; print(base64.urlsafe_b64encode(os.urandom(32)).decode())'"


class Vault:
    """Encrypts secrets before they are stored."""

    def __init__(self, key: str, *, source: str) -> None:
        """Raise OperatorError, naming `source`, if `key` is not 32 bytes in URL-safe base64."""
        self._source = source
        self._key = key.encode()
        try:
            self._fernet = Fernet(key)
        except ValueError:
            raise OperatorError(
                f"{source}: found an invalid encryption key; generate one with: {_MAKE}"
            ) from None

    def derive(self, purpose: str) -> bytes:
        """Return 32 bytes that are derived from the key for a purpose."""
        return hmac.digest(urlsafe_b64decode(self._key), purpose.encode(), "sha256")

    def encrypt(self, secret: bytes) -> bytes:
        """Return the ciphertext of a secret."""
        return self._fernet.encrypt(secret)

    def decrypt(self, stored: bytes) -> bytes:
        """Return the secret; raises OperatorError if another key encrypted it."""
        try:
            return self._fernet.decrypt(stored)
        except InvalidToken:
            raise OperatorError(
                f"{self._source}: this encryption key does not match the database; use the key "
                "with which the database was created"
            ) from None


async def open_proven_vault(settings: Settings, database: Database) -> Vault:
    """Return the vault after checking that its key matches the database.

    A key is generated only if the database contains no encrypted data. Raises OperatorError.
    """
    stored = await database.read(_load_any_encrypted)
    vault = open_vault(settings, generate=stored is None)
    if stored is not None:
        vault.decrypt(stored)
    return vault


def _load_any_encrypted(connection: Connection) -> bytes | None:
    return connection.scalars(select(signing_keys.c.private_key).limit(1)).one_or_none()


def open_vault(settings: Settings, *, generate: bool = True) -> Vault:
    """Return the vault with the configured key, or with the key file next to a SQLite database.

    With `generate`, a missing key file is created. Raises OperatorError if the key is missing or
    malformed.
    """
    if settings.encryption_key is not None:
        source = settings.describe_source("encryption_key")
        return Vault(settings.encryption_key.get_secret_value(), source=source)
    url = parse_url(settings.database)
    if not is_sqlite(url):
        raise OperatorError(
            f"PostgreSQL requires an encryption key that all nodes share: set {_VARIABLE} or "
            f"{_VARIABLE}_FILE; generate a key with: {_MAKE}"
        )
    path = sqlite_file(url).parent / KEY_FILE
    if generate:
        _generate(path)
    elif not path.exists():
        raise OperatorError(
            f"no encryption key at {path}; set {_VARIABLE} or {_VARIABLE}_FILE to the key "
            "with which the database was created"
        )
    return Vault(_read(path), source=str(path))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except UnicodeDecodeError:
        return ""
    except OSError as error:
        raise OperatorError(f"cannot read the encryption key: {error}") from error


def _generate(path: Path) -> None:
    """Create a key at `path` atomically, unless one exists."""
    if path.exists():
        return
    make_private_folder(path.parent)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(Fernet.generate_key() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    except FileExistsError:
        pass  # another process created the key first
    finally:
        draft.unlink()
