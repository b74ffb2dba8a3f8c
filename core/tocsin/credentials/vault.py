"""Encryption of secrets at rest (Fernet) with keys that are never in the database."""

from __future__ import annotations

import hmac
import os
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from tocsin.errors import OperatorError
from tocsin.settings import Settings
from tocsin.store import is_sqlite, make_private_folder, parse_url, sqlite_file

KEY_FILE = "encryption.key"
_VARIABLE = "TOCSIN_ENCRYPTION_KEY"
_MAKE = "python3 -c 'import base64, os; print(base64.urlsafe_b64encode(os.urandom(32)).decode())'"
_SEPARATOR = re.compile(r"[\s,]+")


class EncryptionKey:
    """One key: 32 bytes."""

    def __init__(self, text: str) -> None:
        """Raise ValueError if the text is not 32 bytes in URL-safe base64."""
        self._fernet = Fernet(text)
        self._secret = urlsafe_b64decode(text.encode())
        self.id = self.derive("key ID")[:8].hex()
        """A name that reveals nothing about the key."""

    def derive(self, purpose: str) -> bytes:
        """Return 32 bytes that are derived from the key for a purpose."""
        return hmac.digest(self._secret, purpose.encode(), "sha256")

    def open_cipher(self, purpose: str | None) -> Fernet:
        """Return the cipher of a purpose; None for most secrets."""
        return self._fernet if purpose is None else Fernet(urlsafe_b64encode(self.derive(purpose)))


@dataclass(frozen=True, slots=True)
class _Keyring:
    keys: tuple[EncryptionKey, ...]
    current: EncryptionKey
    derived: Mapping[str, bytes] = field(default_factory=dict)
    source: str = ""


class Vault:
    """Encrypts secrets with one key, and decrypts those of all keys that are configured."""

    def __init__(self, keys: str, *, source: str) -> None:
        """Take keys that are separated by white space or commas, the newest first.

        Until it is known which one the database uses, it is the oldest: the others come into use
        one after the other. Raises OperatorError, naming `source`, if one is not 32 bytes in
        URL-safe base64.
        """
        try:
            parsed = [EncryptionKey(text) for text in _SEPARATOR.split(keys.strip())]
        except ValueError:
            raise OperatorError(
                f"{source}: found an invalid encryption key; generate one with: {_MAKE}"
            ) from None
        several = tuple({key.id: key for key in parsed}.values())
        self._keyring = _Keyring(several, several[-1], source=source)

    @property
    def source(self) -> str:
        """The setting or the file that the keys come from."""
        return self._keyring.source

    @property
    def key_ids(self) -> Sequence[str]:
        """The IDs of the keys, the newest first."""
        return [key.id for key in self._keyring.keys]

    @property
    def current_id(self) -> str:
        """The ID of the key that encrypts."""
        return self._keyring.current.id

    def use(self, key_id: str, derived: Mapping[str, bytes]) -> None:
        """Encrypt with this key; `derived` are values that stay when the key changes."""
        ring = self._keyring
        self._keyring = _Keyring(ring.keys, self._get(key_id), dict(derived), ring.source)

    def replace_keys(self, other: Vault) -> bool:
        """Take over the keys of another vault, and return whether they differ."""
        is_same = self.key_ids == other.key_ids
        self._keyring = other._keyring
        return not is_same

    def derive(self, purpose: str) -> bytes:
        """Return 32 bytes that are derived for a purpose from the first key of the database."""
        ring = self._keyring
        return ring.derived.get(purpose) or ring.current.derive(purpose)

    def derive_from(self, key_id: str, purpose: str) -> bytes:
        """Return 32 bytes that are derived from this key for a purpose."""
        return self._get(key_id).derive(purpose)

    def open_cipher(self, purpose: str | None = None) -> MultiFernet:
        """Return a cipher that encrypts with the current key and decrypts with any."""
        ring = self._keyring
        others = [key for key in ring.keys if key is not ring.current]
        return MultiFernet([key.open_cipher(purpose) for key in (ring.current, *others)])

    def encrypt(self, secret: bytes) -> bytes:
        """Return the ciphertext of a secret."""
        return self._keyring.current.open_cipher(None).encrypt(secret)

    def encrypt_with(self, key_id: str, secret: bytes) -> bytes:
        """Return the ciphertext of a secret under this key."""
        return self._get(key_id).open_cipher(None).encrypt(secret)

    def decrypt(self, stored: bytes) -> bytes:
        """Return the secret; raises OperatorError if another key encrypted it."""
        try:
            return self.open_cipher().decrypt(stored)
        except InvalidToken:
            raise OperatorError(
                f"{self.source}: this encryption key does not match the database; use the key "
                "with which the database was created. To change the key, put the new key before it"
            ) from None

    def find_key(self, stored: bytes, purpose: str | None = None) -> str | None:
        """Return the ID of the key that encrypted a value; None if none of these did."""
        ring = self._keyring
        for key in sorted(ring.keys, key=lambda key: key is not ring.current):
            try:
                key.open_cipher(purpose).decrypt(stored)
            except InvalidToken:
                continue
            return key.id
        return None

    def reencrypt(self, stored: bytes, purpose: str | None = None) -> bytes:
        """Return the same secret under the current key; raises InvalidToken."""
        return self.open_cipher(purpose).rotate(stored)

    def _get(self, key_id: str) -> EncryptionKey:
        return next(key for key in self._keyring.keys if key.id == key_id)


def open_vault(settings: Settings, *, generate: bool = True) -> Vault:
    """Return the vault with the configured keys, or with the key file next to a SQLite database.

    With `generate`, a missing key file is created. Raises OperatorError if the key is missing or
    malformed.
    """
    if settings.encryption_key is not None:
        source = settings.describe_source("encryption_key")
        return Vault(settings.encryption_key.get_secret_value(), source=source)
    path = find_key_file(settings)
    if path is None:
        raise OperatorError(
            f"PostgreSQL requires an encryption key that all nodes share: set {_VARIABLE} or "
            f"{_VARIABLE}_FILE; generate a key with: {_MAKE}"
        )
    if generate:
        _generate(path)
    elif not path.exists():
        raise OperatorError(
            f"no encryption key at {path}; set {_VARIABLE} or {_VARIABLE}_FILE to the key "
            "with which the database was created"
        )
    return Vault(_read(path), source=str(path))


def find_key_file(settings: Settings) -> Path | None:
    """Return the key file next to a SQLite database; None if keys come from the settings."""
    url = parse_url(settings.database)
    if settings.encryption_key is not None or not is_sqlite(url):
        return None
    return sqlite_file(url).parent / KEY_FILE


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
