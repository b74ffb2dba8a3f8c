"""Contract of a provider's records: the fields that its mapping needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

ANY = "any"
EMPTY_LIST = "[]"
"""Type of a list without items, which fits every list."""
_TYPE = re.compile(r"(string|number|boolean|object|null|any)(\[\])?")


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """Types of one field, and whether each record has it."""

    types: frozenset[str]
    is_required: bool

    def accepts(self, found: Iterable[str]) -> bool:
        """Return whether one of the types that a record has fits."""
        return any(
            kind in self.types
            or ANY in self.types
            or (kind == EMPTY_LIST and any(own.endswith(EMPTY_LIST) for own in self.types))
            for kind in found
        )

    def __str__(self) -> str:
        """Return the types as they are written in a contract."""
        return " | ".join(sorted(self.types))


@dataclass(frozen=True, slots=True)
class RecordContract:
    """The fields that a provider's mapping needs in one kind of record, with their types.

    Paths are dotted and ignore lists: `items.name` is the name of each item. The types are
    `string`, `number`, `boolean`, `object`, `null` and `any`. A type with `[]` is a list, and `|`
    separates alternatives, as in `string | string[]`. Raises ValueError for any other type.
    """

    required: Mapping[str, str]
    """The fields that every record has."""
    optional: Mapping[str, str] = field(default_factory=dict)
    """The fields that only some records have."""
    fields: Mapping[str, FieldSpec] = field(init=False, repr=False)
    """Every field by its path."""
    holders: frozenset[str] = field(init=False, repr=False)
    """The paths of the objects that contain fields."""

    def __post_init__(self) -> None:
        if twice := sorted(self.required.keys() & self.optional.keys()):
            raise ValueError(f"{twice[0]} is both required and optional; list it once")
        named = ((self.required, True), (self.optional, False))
        specs = {
            path: FieldSpec(_parse_types(path, types), required)
            for paths, required in named
            for path, types in paths.items()
        }
        holders = (_list_holders(path) for path in specs)
        object.__setattr__(self, "fields", specs)
        object.__setattr__(self, "holders", frozenset(name for names in holders for name in names))


def _parse_types(path: str, written: str) -> frozenset[str]:
    types = [name.strip() for name in written.split("|")]
    for name in types:
        if not _TYPE.fullmatch(name):
            raise ValueError(
                f"{path}: found the type {name!r}; use string, number, boolean, object, null or"
                " any, with [] for lists, and separate alternatives by |"
            )
    return frozenset(types)


@lru_cache(maxsize=4096)
def _list_holders(path: str) -> tuple[str, ...]:
    return tuple(path[: match.start()] for match in re.finditer(r"\.", path))
