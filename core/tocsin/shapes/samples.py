"""Samples of the shapes of live records, in bounded memory and without values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from tocsin.shapes.contract import EMPTY_LIST, RecordContract

SAMPLES_PER_PAGE = 10
MAX_PENDING = 50
"""The samples of one kind of record that wait to be stored; further records are not sampled."""
MAX_ITEMS = 20
"""The items of a list that are looked at."""
MAX_MEMBERS = 200
"""The members of an object above which its names may be values; only needed ones are noted."""
FREE_NAME = "*"
"""Stands for a name that may be a value."""
_FIELD_NAME = re.compile(r"[@$#_]?[A-Za-z][A-Za-z_]*(?:\d{1,3}[A-Za-z_]*){0,3}")
_MAX_NAME = 60


@dataclass(frozen=True, slots=True)
class ShapeSample:
    """The shape of one record: the types of its needed fields, and of the fields beside them."""

    at: datetime
    types: Mapping[str, frozenset[str]]
    """Types by path; `object` where an object was not entered."""


class ShapeRecorder:
    """Samples of one provider's records that are not stored yet."""

    def __init__(self) -> None:
        self._pending: dict[str, list[ShapeSample]] = {}

    def record(
        self,
        kind: str,
        contract: RecordContract,
        records: Sequence[Mapping[str, Any]],
        at: datetime,
    ) -> None:
        """Note the shapes of some of the records, spread evenly."""
        pending = self._pending.setdefault(kind, [])
        room = min(SAMPLES_PER_PAGE, MAX_PENDING - len(pending))
        if room <= 0 or not records:
            return
        step = -(-len(records) // room)
        pending += [ShapeSample(at, read_shape(one, contract)) for one in records[::step]]

    def take(self) -> dict[str, list[ShapeSample]]:
        """Return the samples by kind of record, and forget them."""
        taken = {kind: samples for kind, samples in self._pending.items() if samples}
        self._pending = {}
        return taken


def read_shape(record: Any, contract: RecordContract) -> dict[str, frozenset[str]]:
    """Return the types in a record by path, without any value.

    Only objects that hold needed fields are entered, so that the number of paths is bounded and the
    keys of other objects, which may be values, are never read.
    """
    found: dict[str, set[str]] = {}
    if isinstance(record, Mapping):
        _visit(record, "", contract, found)
    return {path: _intern_types(frozenset(types)) for path, types in found.items()}


def _visit(
    holder: Mapping[str, Any], prefix: str, contract: RecordContract, found: dict[str, set[str]]
) -> None:
    is_map = len(holder) > MAX_MEMBERS
    for name, value in holder.items():
        path = f"{prefix}{name}"
        is_holder = path in contract.holders
        if path not in contract.fields and not is_holder:
            if is_map:
                continue
            if not _is_field_name(name, prefix, contract):
                path = f"{prefix}{FREE_NAME}"
        found.setdefault(path, set()).update(_name_types(value))
        if is_holder:
            for item in value[:MAX_ITEMS] if isinstance(value, list) else (value,):
                if isinstance(item, Mapping):
                    _visit(item, f"{path}.", contract, found)


def _is_field_name(name: str, prefix: str, contract: RecordContract) -> bool:
    """Return whether a name is one that an API defines, not a value such as an address.

    A dotted name must continue an object that holds needed fields, as flat documents have it.
    """
    if len(name) > _MAX_NAME:
        return False
    *holders, last = name.split(".")
    is_known = not holders or f"{prefix}{holders[0]}" in contract.holders
    return is_known and all(_is_word(word) for word in (*holders, last))


@lru_cache(maxsize=8192)
def _is_word(name: str) -> bool:
    return _FIELD_NAME.fullmatch(name) is not None


def _name_types(value: Any) -> frozenset[str]:
    if isinstance(value, list):
        if not value:
            return frozenset((EMPTY_LIST,))
        return frozenset(f"{_name_type(item)}[]" for item in value[:MAX_ITEMS])
    return frozenset((_name_type(value),))


def _name_type(value: Any) -> str:
    match value:
        case str():
            return "string"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case None:
            return "null"
        case list():
            return "list"
    return "object"


@lru_cache(maxsize=1024)
def _intern_types(types: frozenset[str]) -> frozenset[str]:
    """Return one instance of equal sets, since records repeat few of them."""
    return types
