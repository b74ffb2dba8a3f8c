"""Values of expressions: those of JSON, and missing ones.

Every function that takes an `Allowance` pays from it before it does what it pays for.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any, Final

from tocsin.sandbox import Allowance

MAX_BITS = 64
_MAX_PATH = 200  # characters
_SEARCH_STEP = 64  # characters that a search compares at once


class Missing:
    """A value that an event lacks: false, empty, and equal to nothing."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return ""


MISSING: Final = Missing()


def describe(value: Any) -> str:
    """Return the kind of a value in words, for errors."""
    kinds = {str: "text", bool: "a boolean", int: "a number", float: "a number", list: "a list"}
    if value is MISSING:
        return "a missing value"
    return "null" if value is None else kinds.get(type(value), "an object")


def is_true(value: Any) -> bool:
    """Return whether the value counts as true: not empty, zero, null or missing."""
    return bool(value)


def is_number(value: Any) -> bool:
    """Return whether the value is a number, which a boolean is not."""
    return type(value) in (int, float)


def to_number(value: Any) -> int | float:
    """Return a number of at most 64 bits; TypeError or OverflowError otherwise."""
    if isinstance(value, int):
        if value.bit_length() > MAX_BITS:
            raise OverflowError(f"an integer can have at most {MAX_BITS} bits")
        return value
    if isinstance(value, float):
        return value
    raise TypeError(f"expected a number, found {describe(value)}")


def to_count(value: Any, most: int) -> int:
    """Return an integer from 0 to `most`; ValueError otherwise."""
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"expected an integer from 0 to {most:,}")
    return value


def to_text(value: Any, allowance: Allowance) -> str:
    """Return the value as text; nothing for a missing value."""
    allowance.pay_for(value)
    return "" if value is MISSING else str(value)


def to_items(value: Any, allowance: Allowance) -> Sequence[Any]:
    """Return the items of a list, the characters of a text, the names of an object's members."""
    if value is MISSING:
        return ()
    if not isinstance(value, list | str | dict):
        raise TypeError(f"expected a list, found {describe(value)}")
    allowance.spend(1 + len(value))
    return value if isinstance(value, list) else list(value)


def to_json(value: Any, allowance: Allowance) -> Any:
    """Return the value as JSON, with null in place of missing values.

    Raises ValueError for infinity and not-a-number, which JSON does not have.
    """
    if isinstance(value, dict | list):
        allowance.pay_for(value)
    return _copy(value)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(f"{value} is not a JSON number")
    return None if value is MISSING else value


def find_member(value: Any, key: Any) -> Any:
    """Return the member of an object, or the item of a list or text; missing otherwise."""
    if isinstance(value, dict):
        return value.get(key, MISSING) if isinstance(key, str) else MISSING
    if isinstance(value, list | str) and type(key) is int and -len(value) <= key < len(value):
        return value[key]
    return MISSING


def parse_path(path: Any) -> Sequence[str | int]:
    """Return the keys of a dotted path; ValueError if it is not one."""
    if type(path) is int:
        return (path,)
    if not isinstance(path, str) or not 0 < len(path) <= _MAX_PATH:
        raise ValueError(f"`attribute` must be a dotted path of at most {_MAX_PATH} characters")
    return [
        int(part) if part.isdecimal() and len(part) < MAX_BITS // 4 else part
        for part in path.split(".")
    ]


def find_path(value: Any, keys: Sequence[str | int], allowance: Allowance) -> Any:
    """Return the value at the end of a path."""
    allowance.spend(1 + len(keys))
    for key in keys:
        value = find_member(value, key)
    return value


def are_equal(left: Any, right: Any, allowance: Allowance) -> bool:
    """Return whether two values are equal; a missing one equals nothing."""
    if left is MISSING or right is MISSING:
        return False
    if isinstance(left, str) and isinstance(right, str):
        allowance.spend(1 + min(len(left), len(right)) // _SEARCH_STEP)
    elif isinstance(left, dict | list) and isinstance(right, dict | list):
        allowance.pay_for(left)
        allowance.pay_for(right)
    return bool(left == right)


def is_less(left: Any, right: Any, allowance: Allowance) -> bool:
    """Return whether the left value comes first: of two numbers, or of two texts."""
    if left is MISSING or right is MISSING:
        return False
    if isinstance(left, str) and isinstance(right, str):
        allowance.spend(1 + min(len(left), len(right)) // _SEARCH_STEP)
    elif not isinstance(left, int | float) or not isinstance(right, int | float):
        raise TypeError(f"cannot compare {describe(left)} with {describe(right)}")
    return bool(left < right)


def is_at_most(left: Any, right: Any, allowance: Allowance) -> bool:
    """Return whether the left value is less than or equals the right one."""
    return is_less(left, right, allowance) or are_equal(left, right, allowance)


def is_in(value: Any, container: Any, allowance: Allowance) -> bool:
    """Return whether a text contains another, a list an item, or an object a member."""
    if value is MISSING or container is MISSING:
        return False
    if isinstance(container, str):
        if not isinstance(value, str):
            raise TypeError(f"cannot search text for {describe(value)}; search for text")
        pay_for_search(container, value, allowance)
        return value in container
    if isinstance(container, dict):
        return isinstance(value, str) and value in container
    if isinstance(container, list):
        return any(are_equal(value, item, allowance) for item in to_items(container, allowance))
    raise TypeError(f"`in` requires text, a list or an object, found {describe(container)}")


def pay_for_search(text: str, word: str, allowance: Allowance) -> None:
    """Pay for the worst case of looking for a word."""
    allowance.spend(1 + len(text) // _SEARCH_STEP * (1 + len(word) // _SEARCH_STEP))
