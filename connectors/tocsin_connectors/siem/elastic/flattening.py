"""Documents whose members stand nested, under dotted names, or both at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_DEEPEST = 30  # lists count too

Flat = dict[str, Any]
"""Each member by its dotted name, with the list of its values."""


def flattened(source: Mapping[str, Any]) -> Flat:
    """Return every value of a document by the dotted name of its member.

    `{"a.b": 1, "a": {"b": [2]}}` is `{"a.b": [1, 2]}`: what stands under a dotted name comes first,
    since Kibana writes so what it changes later.
    """
    found: Flat = {}
    for name, value in _members("", source, _DEEPEST):
        found.setdefault(name, []).append(value)
    return found


def _members(place: str, value: Any, deepest: int) -> Iterator[tuple[str, Any]]:
    if not deepest:
        return
    if isinstance(value, Mapping):
        for name, inner in sorted(value.items(), key=lambda it: "." not in it[0]):
            yield from _members(f"{place}.{name}" if place else name, inner, deepest - 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _members(place, inner, deepest - 1)
    elif value is not None:
        yield place, value
