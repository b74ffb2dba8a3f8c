"""Upper bounds of the cost of filters, beyond the length of their arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from tocsin.sandbox.allowance import charge

# a width given as an argument, or with four digits
_WIDE = re.compile(r"%[^%a-zA-Z]*?(\*|\d{4}|\()")
_PER_SEARCH = 64  # characters that a search compares at once


def _format(value: object, *args: object) -> int:
    text = str(value)
    if _WIDE.search(text):
        raise ValueError(
            "a format string can only use its values in order, with widths of at most three digits"
        )
    return text.count("%") * (2_000 + max((len(str(charge(each))) for each in args), default=0))


def _indent(text: object, width: int | str = 4, *_: object, **__: object) -> int:
    return len(str(text).splitlines()) * (len(width) if isinstance(width, str) else width)


def _list(value: object) -> int:
    return 16 * len(value) if isinstance(value, str) else 0  # each character becomes a text


def _order(value: object, *_: object, **__: object) -> int:
    """Return the cost of comparing the items, which are charged at their full size."""
    charge(value)
    count = len(value) if isinstance(value, Collection) else 0
    return count * count.bit_length()


def _replace(text: object, old: object, new: object, *_: object, **__: object) -> int:
    return str(text).count(str(old)) * len(str(new))


def _striptags(value: object) -> int:
    text = str(value)
    return text.count("<") * len(text) // _PER_SEARCH  # each tag is cut out of the whole text


def _tojson(value: object, indent: int | None = None) -> int:
    return _count_lines(value) * indent if indent else 0


def _count_lines(value: object) -> int:
    """Return the sum of the depths of all members."""
    charge(value)
    level, depth, total = [value], 0, 0
    while level:
        depth += 1
        members: list[object] = []
        for each in level:
            if isinstance(each, Mapping):
                members.extend(each.values())
            elif isinstance(each, list | tuple):
                members.extend(each)
        total += depth * (len(level) + len(members))
        level = members
    return total


def _trim(value: object, chars: object = "") -> int:
    return len(str(value)) * len(str(chars)) // _PER_SEARCH


def _wide(value: object, *_: object, **__: object) -> int:
    return 8 * len(value) if isinstance(value, str) else 0


COSTS: Mapping[str, Callable[..., int]] = MappingProxyType(
    {
        "batch": lambda _, linecount, *_rest, **_named: linecount,
        "center": lambda _, width=80: width,
        "dictsort": _order,
        "format": _format,
        "groupby": _order,
        "indent": _indent,
        "list": _list,
        "max": _order,
        "min": _order,
        "replace": _replace,
        "slice": lambda _, slices, *_rest, **_named: 8 * slices,
        "sort": _order,
        "striptags": _striptags,
        "tojson": _tojson,
        "trim": _trim,
        "unique": _order,
        "urlencode": _wide,
        "wordcount": _wide,
    }
)
