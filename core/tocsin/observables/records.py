"""Entities in structured data: an event, an alert, any JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tocsin.model import Json
from tocsin.observables.field_semantics import classify_field
from tocsin.observables.field_values import parse_field_value
from tocsin.observables.results import DEFAULT_LIMIT, ObservableCollector, Observables
from tocsin.observables.text import collect_from_text

DEPTH_LIMIT: Final = 32
VALUES_LIMIT: Final = 100_000
TEXT_LIMIT: Final = 1_000_000


def find_in_record(record: Mapping[str, Json], limit: int = DEFAULT_LIMIT) -> Observables:
    """Return the entities and techniques in a record, at most `limit` of them.

    A known field name, such as `src_ip`, `TargetUserName` or `process.name`, determines the kind of
    the field's value. Otherwise, the value determines the kind, as in `find_observables`. The
    search covers 32 levels, 100,000 values and the first 1,000,000 characters of each text;
    `complete` is False if the record exceeds these limits.
    """
    collection = ObservableCollector(limit)
    _RecordReader(collection).read(record)
    return collection.observables()


class _RecordReader:
    """Reads a record in its own order."""

    def __init__(self, collection: ObservableCollector) -> None:
        self._collection = collection
        self._values_left = VALUES_LIMIT

    def read(self, record: Json) -> None:
        stack: list[tuple[str, Json, int]] = [("", record, 0)]
        while stack and not self._collection.full:
            name, value, depth = stack.pop()
            self._values_left -= 1
            if depth > DEPTH_LIMIT or self._values_left < 0:
                self._collection.complete = False
            elif isinstance(value, str):
                self._read_text(name, value)
            else:
                stack.extend(reversed(list(_members(name, value, depth + 1))))

    def _read_text(self, name: str, text: str) -> None:
        if len(text) > TEXT_LIMIT:
            self._collection.complete = False
            text = text[:TEXT_LIMIT]
        meaning = classify_field(name) if len(name) <= _NAME_LIMIT else None
        found = (
            parse_field_value(meaning, text.strip())
            if meaning and len(text) <= _VALUE_LIMIT
            else None
        )
        if found is not None:
            self._collection.finds |= found
        else:
            collect_from_text(text, self._collection)


_NAME_LIMIT = 512
_VALUE_LIMIT = 4_096


def _members(name: str, value: Json, depth: int) -> list[tuple[str, Json, int]]:
    """Return the members of a mapping or list; members of a list have the list's name."""
    if isinstance(value, Mapping):
        return [(f"{name}.{key}"[-_NAME_LIMIT:], member, depth) for key, member in value.items()]
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [(name, member, depth) for member in value]
    return []
