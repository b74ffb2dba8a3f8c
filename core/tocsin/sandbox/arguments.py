"""Types and sizes of the arguments of filters, tests and operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from jinja2.runtime import Undefined

MAX_BITS = 64
MAX_WIDTH = 100_000
MAX_DIGITS = 15
_MAX_PATH = 200  # characters
_MAX_INDENT = 8
_BASES = 36
_EMPTY: dict[str, str] = {}
_VALUES = (
    *(type(None), bool, int, float, str, list, tuple, dict, range, Undefined),
    *(type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items())),
)

Check = Callable[[Any], None]


def check_value(value: Any) -> None:
    """Raise TypeError for what is no value of JSON, and OverflowError for a large integer."""
    if not isinstance(value, _VALUES):
        raise TypeError(
            f"a {type(value).__name__} is not a value; only JSON values can be rendered or filtered"
        )
    check_integer(value)


def check_integer(value: Any) -> None:
    """Raise OverflowError for an integer of more than 64 bits."""
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise OverflowError(f"an integer can have at most {MAX_BITS} bits")


def _check_any(_value: Any) -> None:
    """Accept anything: it is only passed on, or its truth is taken."""


def _count(most: int) -> Check:
    def check(value: Any) -> None:
        if type(value) is not int or not 0 <= value <= most:
            raise ValueError(f"expected an integer from 0 to {most:,}")

    return check


def _optional(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def _check_text(value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found a value of the type {type(value).__name__}")


def _check_path(value: Any) -> None:
    if type(value) is not int and (not isinstance(value, str) or len(value) > _MAX_PATH):
        raise ValueError(f"expected a dotted path of at most {_MAX_PATH} characters")


def _check_number(value: Any) -> None:
    if not isinstance(value, int | float):
        raise TypeError(f"expected a number, found a value of the type {type(value).__name__}")


def _check_width(value: Any) -> None:
    (_check_text if isinstance(value, str) else _count(MAX_WIDTH))(value)


_flag, _width, _path = _check_any, _count(MAX_WIDTH), _optional(_check_path)
_ordered = {"case_sensitive": _flag, "attribute": _path}
PARAMETERS: Mapping[str, Mapping[str, Check]] = MappingProxyType(
    {
        "batch": {"linecount": _width, "fill_with": check_value},
        "center": {"width": _width},
        "d": {"default_value": _check_any, "boolean": _flag},
        "default": {"default_value": _check_any, "boolean": _flag},
        "dictsort": {"case_sensitive": _flag, "by": _check_text, "reverse": _flag},
        "filesizeformat": {"binary": _flag},
        "float": {"default": check_value},
        "groupby": {"attribute": _check_path, "default": check_value, "case_sensitive": _flag},
        "indent": {"width": _check_width, "first": _flag, "blank": _flag},
        "int": {"default": check_value, "base": _count(_BASES)},
        "join": {"d": _check_text, "attribute": _path},
        "max": _ordered,
        "min": _ordered,
        "replace": {"old": check_value, "new": check_value, "count": _optional(_width)},
        "round": {"precision": _count(MAX_DIGITS), "method": _check_text},
        "shorten": {"limit": _width, "link": check_value},
        "slice": {"slices": _width, "fill_with": check_value},
        "sort": {"reverse": _flag, **_ordered},
        "sum": {"attribute": _path, "start": _check_number},
        "tojson": {"indent": _optional(_count(_MAX_INDENT))},
        "trim": {"chars": _optional(_check_text)},
        "truncate": {
            "length": _width,
            "killwords": _flag,
            "end": _check_text,
            "leeway": _optional(_width),
        },
        "unique": _ordered,
    }
)
"""Checks by filter and parameter, the value aside; a filter that is missing takes only a value."""

MEMBER_OPTIONS: Mapping[str, Check] = MappingProxyType(
    {"attribute": _check_path, "default": check_value}
)
"""Checks of the named arguments of `map`."""
check_path = _check_path
