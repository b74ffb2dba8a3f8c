"""JSON decoding that tolerates split surrogate pairs, and access by dotted paths."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import orjson

_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_LIST_DEPTH = 30
_OBJECT = (dict, Mapping)
"""Types of objects; `dict` is first, as it is tested faster than the abstract class."""


def parse_json(content: bytes) -> Any:
    """Return the decoded `content`; raises ValueError if it is not JSON.

    A lone UTF-16 surrogate, which programs write when they truncate text within a character,
    becomes U+FFFD. RFC 8259 (section 8.2) allows lone surrogates in JSON, but they cannot be stored
    as text.
    """
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        if not _ESCAPED_SURROGATE.search(content):
            raise
    try:
        text = json.dumps(json.loads(content), ensure_ascii=False)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return orjson.loads(_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text))


def values_at(document: Any, path: str, *, enter_lists: bool = True) -> Iterator[Any]:
    """Return the values at a dotted path such as `dns.question.name`, without nulls.

    The path can lead through nested objects, and the names in it can contain dots. Values at dotted
    names come first. With `enter_lists`, the path continues into the items of each list, and a list
    at the end of the path yields its items.
    """
    found: list[Any] = []
    _collect(document, path, enter_lists, found)
    return iter(found)


def _collect(document: Any, path: str, enter_lists: bool, found: list[Any]) -> None:
    holders = _list_items(document) if enter_lists and isinstance(document, list) else (document,)
    for holder in holders:
        if not isinstance(holder, _OBJECT):
            continue
        if (value := holder.get(path)) is not None:
            found += _list_items(value) if enter_lists else (value,)
        for name, rest in _split_path(path):
            if name in holder:
                _collect(holder[name], rest, enter_lists, found)


@lru_cache(maxsize=4_096)
def _split_path(path: str) -> tuple[tuple[str, str], ...]:
    """Return each way to split a path at a dot, the longest name first."""
    dots = (place for place in range(len(path) - 1, -1, -1) if path[place] == ".")
    return tuple((path[:dot], path[dot + 1 :]) for dot in dots)


def _list_items(value: Any, depth: int = _MAX_LIST_DEPTH) -> Iterator[Any]:
    """Yield a value, or the items of a list and of the lists in it, without null."""
    if isinstance(value, list):
        for item in value if depth else ():
            yield from _list_items(item, depth - 1)
    elif value is not None:
        yield value
