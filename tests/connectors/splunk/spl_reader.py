"""Parser of the SPL that the provider builds; anything else is an error."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

Record = dict[str, Any]

LITERAL = r'urldecode\("((?:[A-Za-z0-9]|%[0-9A-F]{2})*)"\)'
_ANY_OF = re.compile(rf"isnotnull\(mvfilter\(lower\((\w+)\)==lower\({LITERAL}\)\)\)")
_IS = re.compile(rf"(\w+)=={LITERAL}")
_BOUND = re.compile(r"(\w+)(>=|<)([\d.]+)")
_LIKE = re.compile(r'(\w+)="([A-Za-z0-9._:@/*-]+)"')


class SplError(Exception):
    """What Splunk answers to a search that it cannot read."""


def commands(spl: str) -> list[str]:
    """Return the commands of a search: a pipe in quotes ends none."""
    parts, quoted, escaped = [""], False, False
    for character in spl:
        if character == "|" and not quoted:
            parts.append("")
            continue
        parts[-1] += character
        quoted ^= character == '"' and not escaped
        escaped = character == "\\" and not escaped
    if quoted:
        raise SplError("Unbalanced quotes.")
    return [part.strip() for part in parts if part.strip()]


def condition(text: str) -> Callable[[Record], bool]:
    """Return what a condition of `where` or `search` lets by."""
    tests, joins, place = [], set(), 0
    while True:
        for form, make in _FORMS.items():
            if match := form.match(text, place):
                tests.append(make(*match.groups()))
                place = match.end()
                break
        else:
            raise SplError(f"Error in 'where' command: {text[place:]!r} is unexpected.")
        if place == len(text):
            break
        joint = re.compile(r" (AND|OR) ").match(text, place)
        if joint is None:
            raise SplError(f"Error in 'where' command: {text[place:]!r} is unexpected.")
        joins.add(joint[1])
        place = joint.end()
    if len(joins) > 1:
        raise SplError("both AND and OR, without brackets")
    every = all if joins == {"AND"} else any
    return lambda record: every(test(record) for test in tests)


def literals(text: str) -> list[str]:
    """Return every value that a condition compares with."""
    return [unquote(match[1]) for match in re.finditer(LITERAL, text)]


def bounds_in(text: str) -> tuple[float, float]:
    """Return the bounds that a condition has for a number."""
    told = {match[2]: float(match[3]) for match in _BOUND.finditer(text)}
    return told[">="], told["<"]


def values(record: Record, name: str) -> list[str]:
    value = record.get(name)
    return [
        item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)
    ]


def _any_of(name: str, encoded: str) -> Callable[[Record], bool]:
    wanted = unquote(encoded).lower()
    return lambda record: any(value.lower() == wanted for value in values(record, name))


def _is(name: str, encoded: str) -> Callable[[Record], bool]:
    wanted = unquote(encoded)
    return lambda record: values(record, name) == [wanted]


def _bound(name: str, comparison: str, number: str) -> Callable[[Record], bool]:
    wanted = float(number)
    if comparison == ">=":
        return lambda record: any(float(value) >= wanted for value in values(record, name))
    return lambda record: any(float(value) < wanted for value in values(record, name))


def _like(name: str, pattern: str) -> Callable[[Record], bool]:
    form = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.IGNORECASE | re.DOTALL)
    return lambda record: any(form.fullmatch(value) for value in values(record, name))


_FORMS = {_ANY_OF: _any_of, _IS: _is, _BOUND: _bound, _LIKE: _like}
