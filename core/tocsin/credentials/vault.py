"""Secrets at rest: encrypted with Fernet under one key, which the database never holds."""

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
    """Encrypts what must not be read from the database."""

    def __init__(self, key: str, *, source: str) -> None:
        """OperatorError, naming `source`, where `key` is not 32 bytes in URL-safe base64."""
        self._source = source
        self._key = key.encode()
        try:
            self._fernet = Fernet(key)
        except ValueError:
            raise OperatorError(
                f"{source}: this is not an encryption key; make one with {_MAKE}"
            ) from None

    def derive(self, purpose: str) -> bytes:
        """Return 32 bytes that only holders of the key can find, others for each purpose."""
        return hmac.digest(urlsafe_b64decode(self._key), purpose.encode(), "sha256")

    def encrypt(self, secret: bytes) -> bytes:
        """Return what may be stored."""
        return self._fernet.encrypt(secret)

    def decrypt(self, stored: bytes) -> bytes:
        """Return what was encrypted; OperatorError where it was with another key."""
        try:
            return self._fernet.decrypt(stored)
        except InvalidToken:
            raise OperatorError(
                f"{self._source}: this encryption key does not decrypt what the database holds; "
                "give the key that it was written with"
            ) from None


async def open_proven_vault(settings: Settings, database: Database) -> Vault:
    """Return the vault, proven to decrypt what the database holds.

    A key is generated only where the database holds nothing encrypted. Raises OperatorError.
    """
    stored = await database.read(_any_encrypted)
    vault = open_vault(settings, generate=stored is None)
    if stored is not None:
        vault.decrypt(stored)
    return vault


def _any_encrypted(connection: Connection) -> bytes | None:
    return connection.scalars(select(signing_keys.c.private_key).limit(1)).one_or_none()


def open_vault(settings: Settings, *, generate: bool = True) -> Vault:
    """Return the vault under the configured key, or under the one beside a SQLite database.

    One is generated there if need be and `generate` allows it. OperatorError where a key is
    missing or malformed.
    """
    if settings.encryption_key is not None and settings.encryption_key_file is not None:
        raise OperatorError(f"{_VARIABLE} and {_VARIABLE}_FILE are both set; set one of them")
    if settings.encryption_key is not None:
        return Vault(settings.encryption_key.get_secret_value(), source=_VARIABLE)
    if settings.encryption_key_file is not None:
        path = settings.encryption_key_file
        return Vault(_read(path), source=f"{_VARIABLE}_FILE ({path})")
    url = parse_url(settings.database)
    if not is_sqlite(url):
        raise OperatorError(
            f"PostgreSQL needs an encryption key that every node shares: set {_VARIABLE} or "
            f"{_VARIABLE}_FILE; make a key with {_MAKE}"
        )
    path = sqlite_file(url).parent / KEY_FILE
    if generate:
        _generate(path)
    elif not path.exists():
        raise OperatorError(
            f"there is no encryption key at {path}; set {_VARIABLE} or {_VARIABLE}_FILE to the one "
            "that the database was written with"
        )
    return Vault(_read(path), source=str(path))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except UnicodeDecodeError:
        return ""
    except OSError as error:
        raise OperatorError(f"the encryption key cannot be read: {error}") from error


def _generate(path: Path) -> None:
    """Leave a key at `path`, whole from the moment it is there; one that exists is kept."""
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
        pass  # another process was first, and its key is the one
    finally:
        draft.unlink()
