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
    """How far some content was read, and how to recognise it under whatever name it turns up."""

    state: FileState
    """The file as it was when it was last looked at."""
    offset: int
    """Up to where it was read; for compressed files, counted in what they hold."""
    head: str
    """The digest of the first `head_length` bytes: a KiB, or what was there."""
    head_length: int
    tail: str
    """The digest of the last KiB before `offset`."""
    in_long_line: bool
    """Whether `offset` lies in a line that is too long and of which the rest is passed over."""
    finished: bool
    """Whether nothing was left to read."""


_POSITIONS = TypeAdapter(list[FilePosition])


def encode_positions(files: Iterable[FilePosition]) -> dict[str, Any]:
    """Return the position that `decode` turns back into `files`."""
    return {"version": VERSION, "files": [_encode_path(known) for known in files]}


def _encode_path(known: FilePosition) -> dict[str, Any]:
    """Return what is remembered as JSON; names of files need not be UTF-8, so they are escaped."""
    path = quote(os.fsencode(known.state.path), safe=_UNESCAPED)
    return asdict(replace(known, state=replace(known.state, path=path)))


def _decode_path(known: FilePosition) -> FilePosition:
    path = os.fsdecode(unquote_to_bytes(known.state.path))
    return replace(known, state=replace(known.state, path=path))


def decode_positions(position: Mapping[str, Any] | None) -> list[FilePosition]:
    """Return the files that a position remembers, none for None.

    Raises `Refused` for a position that this version did not write: to start anew instead would
    bring everything a second time.
    """
    if position is None:
        return []
    if position.get("version") != VERSION:
        raise Refused(f"the stored position has version {position.get('version')!r}, not {VERSION}")
    try:
        return [_decode_path(known) for known in _POSITIONS.validate_python(position.get("files"))]
    except ValidationError as error:
        raise Refused(f"the stored position is malformed: {error}") from error
