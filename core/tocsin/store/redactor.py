"""Erased values: recognized by keyed digests, and replaced by pseudonyms."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime
from enum import Enum
from hashlib import blake2b
from operator import is_
from typing import Any, TypeVar, cast

import orjson
from sqlalchemy import Connection, select

from tocsin.store.tables import erasures

ERASURE_KEY = "tocsin_erasure_key"
"""The execution option with the key of the digests, under the same name in a mapping."""
T = TypeVar("T")
_UNICODE = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}"
_ESCAPED = re.compile(_UNICODE + r'|\\["\\/bfnrt]|.', re.DOTALL)
"""A character as JSON spells it."""
_QUOTED = re.compile(_UNICODE + r"|\\\\|.", re.DOTALL)
"""A character in a text that contains JSON or a `repr`, or a path, in which `\n` is no line end."""
_UNQUOTED = re.compile(r'(?:[^"\\]++|\\.)++', re.DOTALL)
"""Text between two quotes of JSON."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """An erased value, without the value itself."""

    kind: str
    digest: str
    length: int
    pseudonym: str


def digest_value(key: bytes, value: str) -> str:
    """Return the keyed digest by which a value is recognized, without regard to case."""
    return blake2b(
        _lower(value).encode("utf-8", "surrogatepass"), key=key, digest_size=32
    ).hexdigest()


def _lower(text: str) -> str:
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := each.lower()) == 1 else each for each in text)


def _is_json(content: bytes) -> bool:
    try:
        orjson.loads(content)
    except orjson.JSONDecodeError:
        return False
    return True


def _unescape(spelled: str) -> str:
    return spelled if len(spelled) == 1 else str(json.loads(f'"{spelled}"'))


class Redactor:
    """Replaces erased values, where they are not part of a longer word."""

    def __init__(self, key: bytes, erased: Iterable[Erasure]) -> None:
        self._key = key
        self._erased = {erasure.digest: erasure for erasure in erased}
        self._lengths = sorted({each.length for each in self._erased.values()}, reverse=True)

    def redact_text(self, text: str) -> str:
        """Return the text with every erased value replaced, also in quoted JSON and in a `repr`."""
        redacted = self._redact_spelled(text)
        if r"\\" in redacted or r"\u" in redacted:
            redacted = self._redact_spelled(redacted, _QUOTED)
        return redacted

    def _redact_json(self, text: str) -> str:
        """Return text between two quotes of JSON, redacted as the text that it stands for."""
        redacted = self._redact_spelled(text, _ESCAPED)
        if r"\\" in redacted:
            redacted = self._redact_spelled(redacted, _ESCAPED, _QUOTED)
        return redacted

    def _redact_spelled(self, text: str, *patterns: re.Pattern[str]) -> str:
        """Return the text with every erased value replaced that was escaped in these ways.

        Each pattern matches a character or its escape sequence, the outermost first.
        """
        read, spelled = text, cast(Sequence[str], text)
        for pattern in patterns:
            spans = [found.span() for found in pattern.finditer(read)]
            spelled = ["".join(spelled[start:end]) for start, end in spans]
            read = "".join(_unescape(read[start:end]) for start, end in spans)
        parts, done = list[str](), 0
        for start, found in self._find(read):
            parts += (*spelled[done:start], found.pseudonym)
            done = start + found.length
        return "".join((*parts, *spelled[done:])) if parts else text

    def _find(self, text: str) -> Iterator[tuple[int, Erasure]]:
        """Yield the start of each erased value in the text."""
        lowered, start = _lower(text), 0
        while start < len(text):
            found = self._match(lowered, start)
            if found is None:
                start += 1
            else:
                yield start, found
                start += found.length

    def _match(self, text: str, start: int) -> Erasure | None:
        if start and text[start].isalnum() and text[start - 1].isalnum():
            return None
        for length in self._lengths:
            end = start + length
            if end > len(text) or (
                end < len(text) and text[end].isalnum() and text[end - 1].isalnum()
            ):
                continue
            if found := self._erased.get(digest_value(self._key, text[start:end])):
                return found
        return None

    def redact(self, value: T) -> T:
        """Return a value with every text in it redacted; the same object if nothing was found."""
        return cast(T, self._redact(value))

    def _redact(self, value: Any) -> Any:
        result = value
        match value:
            case datetime() | Enum():
                pass
            case str():
                result = self.redact_text(value)
            case bytes():
                result = self._redact_bytes(value)
            case Mapping():
                parts = [part for item in value.items() for part in item]
                if (found := self._redact_parts(parts)) is not None:
                    result = dict(zip(found[::2], found[1::2], strict=True))
            case list() | tuple() | set() | frozenset():
                if (found := self._redact_parts(value)) is not None:
                    result = type(value)(found)
            case _ if is_dataclass(value) and not isinstance(value, type):
                members = {each.name: getattr(value, each.name) for each in fields(value)}
                if (found := self._redact_parts(members.values())) is not None:
                    result = replace(value, **dict(zip(members, found, strict=True)))
        return result

    def _redact_bytes(self, value: bytes) -> bytes:
        """Return bytes with every value replaced, also if it is escaped as in JSON.

        What is no JSON may be its start, and is searched with and without escape sequences.
        """
        text = redacted = value.decode("utf-8", "surrogateescape")
        is_escaped = "\\" in text
        if not (is_escaped and _is_json(value)):
            redacted = self.redact_text(text)
        if is_escaped:
            redacted = _UNQUOTED.sub(lambda part: self._redact_json(part[0]), redacted)
        return value if redacted == text else redacted.encode("utf-8", "surrogateescape")

    def _redact_parts(self, parts: Collection[Any]) -> list[Any] | None:
        """Return redacted values; None if nothing was found.

        They are compared by identity: the comparison of two alerts leaves out their records.
        """
        redacted = [self._redact(part) for part in parts]
        return None if all(map(is_, redacted, parts)) else redacted


_COLUMNS = (erasures.c.kind, erasures.c.digest, erasures.c.length, erasures.c.pseudonym)


def load_erasures(connection: Connection) -> list[Erasure]:
    """Return all erased values."""
    return [Erasure(*row) for row in connection.execute(select(*_COLUMNS).order_by(erasures.c.id))]


def load_redactor(connection: Connection) -> Redactor | None:
    """Return the redactor of the stored values, None as long as nothing was ever erased.

    Raises RuntimeError in a process that stores records without having set the key.
    """
    erased = load_erasures(connection)
    if not erased:
        return None
    key = connection.get_execution_options().get(ERASURE_KEY, {}).get(ERASURE_KEY)
    if key is None:
        raise RuntimeError("values were erased, and this process has no key to recognize them")
    return Redactor(key, erased)
