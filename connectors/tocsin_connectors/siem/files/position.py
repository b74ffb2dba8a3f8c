"""Position in files: the read state that is stored between two reads."""

from __future__ import annotations

import hashlib
import os
import string
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from pydantic import TypeAdapter, ValidationError

from tocsin import Refused
from tocsin_connectors.siem.files.discovery import FileState

KIB = 1024
VERSION = 1
_UNESCAPED = string.printable.replace("%", "")


def compute_digest(content: bytes) -> str:
    """Return the SHA-256 of `content`."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePosition:
    """Read position in some content, with digests that recognize it under any name."""

    state: FileState
    """File metadata at the last read."""
    offset: int
    """Offset up to which it was read, in decompressed bytes."""
    head: str
    """Digest of the first `head_length` bytes: one KiB, or less in a short file."""
    head_length: int
    tail: str
    """Digest of the last KiB before `offset`."""
    in_long_line: bool
    """Whether `offset` is inside an overlong line, the rest of which is skipped."""
    finished: bool
    """Whether the file was read completely."""


_POSITIONS = TypeAdapter(list[FilePosition])


def encode_positions(files: Iterable[FilePosition]) -> dict[str, Any]:
    """Return the stored position of files; the inverse of `decode_positions`."""
    return {"version": VERSION, "files": [_encode_path(known) for known in files]}


def _encode_path(known: FilePosition) -> dict[str, Any]:
    """Return a position as JSON. File names need not be UTF-8, so they are escaped."""
    path = quote(os.fsencode(known.state.path), safe=_UNESCAPED)
    return asdict(replace(known, state=replace(known.state, path=path)))


def _decode_path(known: FilePosition) -> FilePosition:
    path = os.fsdecode(unquote_to_bytes(known.state.path))
    return replace(known, state=replace(known.state, path=path))


def decode_positions(position: Mapping[str, Any] | None) -> list[FilePosition]:
    """Return the file positions in a stored position, none for None.

    Raises `Refused` for a position of another version: starting over would deliver everything a
    second time.
    """
    if position is None:
        return []
    if position.get("version") != VERSION:
        raise Refused(
            f"the stored position has the version {position.get('version')!r}, not {VERSION}"
        )
    try:
        return [_decode_path(known) for known in _POSITIONS.validate_python(position.get("files"))]
    except ValidationError as error:
        raise Refused(f"the stored position is malformed: {error}") from error
