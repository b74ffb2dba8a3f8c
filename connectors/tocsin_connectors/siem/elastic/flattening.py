"""Documents whose members stand nested, under dotted names, or both at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_MAX_DEPTH = 30  # lists count too

FlatDocument = dict[str, Any]
"""Each member by its dotted name, with the list of its values."""


def flatten_document(source: Mapping[str, Any]) -> FlatDocument:
    """Return every value of a document by the dotted name of its member.

    `{"a.b": 1, "a": {"b": [2]}}` is `{"a.b": [1, 2]}`: what stands under a dotted name comes first,
    since Kibana writes so what it changes later.
    """
    found: FlatDocument = {}
    for name, value in _iterate_members("", source, _MAX_DEPTH):
        found.setdefault(name, []).append(value)
    return found


def _iterate_members(place: str, value: Any, deepest: int) -> Iterator[tuple[str, Any]]:
    if not deepest:
        return
    if isinstance(value, Mapping):
        for name, inner in sorted(value.items(), key=lambda it: "." not in it[0]):
            yield from _iterate_members(f"{place}.{name}" if place else name, inner, deepest - 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _iterate_members(place, inner, deepest - 1)
    elif value is not None:
        yield place, value
