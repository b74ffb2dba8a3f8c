"""Files of lines, compressed and optionally encrypted.

An encrypted file is a series of chunks, each encrypted with AES-256-GCM under a key of the file's
own. Its nonce is the number of the chunk and whether it is the last one, so that chunks can neither
be moved nor removed.
"""

from __future__ import annotations

import hashlib
import io
import os
import zlib
from base64 import urlsafe_b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator
from contextlib import contextmanager
from gzip import GzipFile
from pathlib import Path
from typing import IO, Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from tocsin.errors import OperatorError

KEY_BYTES = 32
_CHUNK = 1 << 20
_TAG_BYTES = 16
_COUNTER_BYTES = 11  # of a nonce of 12
_COMPRESSION = 3
"""Level 9 takes four times as long, and saves a tenth."""


class BackupKey:
    """The key that encrypts backups."""

    def __init__(self, key: bytes, salt: bytes) -> None:
        self._key = key
        self.salt = salt
        """Random bytes of one backup, so that no two backups share a key."""

    def derive(self, purpose: str) -> bytes:
        """Return 32 bytes for a purpose within the backup."""
        return HKDF(SHA256(), KEY_BYTES, self.salt, purpose.encode()).derive(self._key)


def load_key(path: Path) -> bytes:
    """Return the 32 bytes in a file; raises OperatorError where there are none."""
    try:
        key = urlsafe_b64decode(path.read_text(encoding="ascii").strip())
    except OSError as error:
        raise OperatorError(f"{path}: cannot be read ({error.strerror})") from error
    except (UnicodeDecodeError, Base64Error):
        key = b""
    if len(key) != KEY_BYTES:
        raise OperatorError(f"{path}: expected {KEY_BYTES} bytes in URL-safe base64")
    return key


class _EncryptedWriter(io.RawIOBase):
    def __init__(self, file: IO[bytes], key: bytes) -> None:
        self._file = file
        self._cipher = AESGCM(key)
        self._waiting = bytearray()
        self._chunks = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._waiting += data
        while len(self._waiting) > _CHUNK:  # the last chunk is not written before the end
            self._write_chunk(bytes(self._waiting[:_CHUNK]), is_last=False)
            del self._waiting[:_CHUNK]
        return len(data)

    def finish(self) -> None:
        """Write the last chunk."""
        self._write_chunk(bytes(self._waiting), is_last=True)

    def _write_chunk(self, chunk: bytes, *, is_last: bool) -> None:
        nonce = _build_nonce(self._chunks, is_last=is_last)
        self._file.write(self._cipher.encrypt(nonce, chunk, None))
        self._chunks += 1


class _EncryptedReader(io.RawIOBase):
    def __init__(self, file: IO[bytes], key: bytes) -> None:
        self._chunks = _decrypt_chunks(file, AESGCM(key))
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = chunk
        count = min(len(view), len(self._rest))
        view[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def _build_nonce(number: int, *, is_last: bool) -> bytes:
    return number.to_bytes(_COUNTER_BYTES) + bytes([is_last])


def _decrypt_chunks(file: IO[bytes], cipher: AESGCM) -> Iterator[bytes]:
    """Yield the chunks; raises ValueError where one was changed or is missing."""
    number, chunk = 0, file.read(_CHUNK + _TAG_BYTES)
    while True:
        following = file.read(_CHUNK + _TAG_BYTES)
        try:
            yield cipher.decrypt(_build_nonce(number, is_last=not following), chunk, None)
        except InvalidTag:
            raise ValueError("it was changed or encrypted with another key") from None
        if not following:
            return
        number, chunk = number + 1, following


@contextmanager
def write_lines(path: Path, key: BackupKey | None) -> Iterator[IO[bytes]]:
    """Give a new file to write lines to; it is on the disk at the end.

    With the key of its backup, it is encrypted with a key that is derived from the file's name.
    """
    with open(path, "xb", opener=_open_private) as file:
        encrypted = None if key is None else _EncryptedWriter(file, key.derive(path.name))
        with (
            GzipFile("", "wb", _COMPRESSION, encrypted or file, mtime=0) as compressed,
            io.BufferedWriter(compressed, _CHUNK) as lines,
        ):
            yield lines
        if encrypted is not None:
            encrypted.finish()
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def read_lines(path: Path, key: BackupKey | None) -> Iterator[Iterator[bytes]]:
    """Give the lines of a file; raises OperatorError where it is damaged."""
    try:
        with path.open("rb") as file:
            raw: IO[bytes] = file
            if key is not None:
                raw = io.BufferedReader(_EncryptedReader(file, key.derive(path.name)), _CHUNK)
            with GzipFile(fileobj=raw, mode="rb") as compressed:
                yield iter(compressed)
    except FileNotFoundError:
        raise OperatorError(f"{path}: the file is missing") from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise OperatorError(f"{path}: the file is damaged: {error}") from error


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file; raises OperatorError where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise OperatorError(f"{path}: cannot be read ({error.strerror})") from error


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
