"""Erased values: recognized by keyed digests, and replaced by pseudonyms."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime
from enum import Enum
from hashlib import blake2b
from operator import is_
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, select

from tocsin.store.tables import erasures

ERASURE_KEY = "tocsin_erasure_key"
"""The execution option with the key of the digests, under the same name in a mapping."""
T = TypeVar("T")


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


class Redactor:
    """Replaces erased values, where they are not part of a longer word."""

    def __init__(self, key: bytes, erased: Iterable[Erasure]) -> None:
        self._key = key
        self._erased = {erasure.digest: erasure for erasure in erased}
        self._lengths = sorted({each.length for each in self._erased.values()}, reverse=True)

    def redact_text(self, text: str) -> str:
        """Return the text with every erased value replaced."""
        lowered, parts, done, start = _lower(text), list[str](), 0, 0
        while start < len(text):
            found = self._match(lowered, start)
            if found is None:
                start += 1
                continue
            parts += (text[done:start], found.pseudonym)
            done = start = start + found.length
        return "".join((*parts, text[done:])) if parts else text

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
        text = value.decode("utf-8", "surrogateescape")
        redacted = self.redact_text(text)
        return value if redacted is text else redacted.encode("utf-8", "surrogateescape")

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
