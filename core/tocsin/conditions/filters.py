"""Filters of expressions, as in Jinja2.

Each takes the allowance, the value and its arguments, whose types and sizes it checks.
`map`, `select` and their kin are in `compiler`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor
from typing import Any

from jinja2.filters import do_title

from tocsin.conditions.methods import METHODS
from tocsin.conditions.values import (
    MISSING,
    describe,
    find_path,
    is_less,
    is_true,
    parse_path,
    pay_for_search,
    to_count,
    to_items,
    to_number,
    to_text,
)
from tocsin.sandbox import Allowance, shorten

_MAX_WIDTH = 100_000
_MAX_DIGITS = 15
_LEEWAY = 5  # characters by which a text may exceed the length before it is cut, as in Jinja2
_MAX_SIGNS = 400  # of a number as text
_ROUNDINGS: Mapping[str, Callable[[float], float]] = {"ceil": ceil, "floor": floor}


def _on_text(convert: Callable[[str], Any]) -> Callable[[Allowance, Any], Any]:
    """Return a filter that reads a text once."""
    return lambda allowance, value: convert(to_text(value, allowance))


def _abs(_allowance: Allowance, value: Any) -> Any:
    return abs(to_number(value))


def _default(
    _allowance: Allowance, value: Any, default_value: Any = "", boolean: Any = False
) -> Any:
    is_lacking = not is_true(value) if is_true(boolean) else value is MISSING
    return default_value if is_lacking else value


def _first(allowance: Allowance, value: Any) -> Any:
    return next(iter(to_items(value, allowance)), MISSING)


def _last(allowance: Allowance, value: Any) -> Any:
    items = to_items(value, allowance)
    return items[-1] if items else MISSING


def _length(allowance: Allowance, value: Any) -> int:
    return len(to_items(value, allowance))


def _list(allowance: Allowance, value: Any) -> list[Any]:
    return list(to_items(value, allowance))


def _reverse(allowance: Allowance, value: Any) -> Any:
    if isinstance(value, str):
        allowance.spend(1 + len(value))
        return value[::-1]
    return list(reversed(to_items(value, allowance)))


def _int(allowance: Allowance, value: Any, default: Any = 0) -> Any:
    number = _parse(allowance, value, int)
    if number is None:  # such as "7.5"
        number = _parse(allowance, value, float)
    try:
        return default if number is None else to_number(int(number))
    except (OverflowError, ValueError):  # infinite, not a number, or more than 64 bits
        return default


def _float(allowance: Allowance, value: Any, default: Any = 0.0) -> Any:
    number = _parse(allowance, value, float)
    return default if number is None else number


def _parse(allowance: Allowance, value: Any, kind: type[int | float]) -> Any:
    if isinstance(value, str):
        allowance.spend(1 + len(value))
    elif not isinstance(value, int | float):
        return None
    if isinstance(value, str) and len(value) > _MAX_SIGNS:
        return None
    try:
        return kind(value)
    except (ValueError, OverflowError):
        return None


def _round(_allowance: Allowance, value: Any, precision: Any = 0, method: Any = "common") -> Any:
    digits, number = to_count(precision, _MAX_DIGITS), to_number(value)
    if method == "common":
        return round(float(number), digits)
    if method not in _ROUNDINGS:
        raise ValueError("round requires the method 'common', 'ceil' or 'floor'")
    return _ROUNDINGS[method](number * 10**digits) / 10**digits


def _sum(allowance: Allowance, value: Any, attribute: Any = None, start: Any = 0) -> Any:
    total = to_number(start)
    for item in _members(allowance, value, attribute):
        total = to_number(total + to_number(item))
    return total


def _members(allowance: Allowance, value: Any, attribute: Any) -> Sequence[Any]:
    """Return the items, or a member of each."""
    items = to_items(value, allowance)
    if attribute is None:
        return items
    keys = parse_path(attribute)
    return [find_path(item, keys, allowance) for item in items]


def _join(allowance: Allowance, value: Any, d: Any = "", attribute: Any = None) -> str:
    texts = [to_text(item, allowance) for item in _members(allowance, value, attribute)]
    separator = to_text(d, allowance)
    allowance.spend(len(texts) * len(separator))
    return separator.join(texts)


def _sort(
    allowance: Allowance,
    value: Any,
    reverse: Any = False,
    case_sensitive: Any = False,
    attribute: Any = None,
) -> list[Any]:
    items = to_items(value, allowance)
    keys = _sort_keys(allowance, _members(allowance, value, attribute), case_sensitive)
    longest = max((len(key) for key in keys if isinstance(key, str)), default=0)
    allowance.spend(len(keys) * len(keys).bit_length() * (1 + longest // 16))
    order = sorted(range(len(keys)), key=keys.__getitem__, reverse=is_true(reverse))
    return [items[position] for position in order]


def _sort_keys(allowance: Allowance, values: Sequence[Any], case_sensitive: Any) -> Sequence[Any]:
    """Return keys that have an order; TypeError if the values have none."""
    if all(isinstance(value, str) for value in values):
        allowance.spend(sum(map(len, values)))
        return values if is_true(case_sensitive) else [value.lower() for value in values]
    if all(isinstance(value, int | float) for value in values):
        return values
    kinds = " and ".join(sorted({describe(value) for value in values}))
    raise TypeError(f"expected only strings or only numbers to sort, found {kinds}")


def _unique(
    allowance: Allowance, value: Any, case_sensitive: Any = False, attribute: Any = None
) -> list[Any]:
    items = to_items(value, allowance)
    found: dict[Any, Any] = {}
    for item, member in zip(items, _members(allowance, value, attribute), strict=True):
        if isinstance(member, dict | list):
            raise TypeError(
                f"unique can compare only strings and numbers, found {describe(member)}"
            )
        key = member
        if isinstance(member, str):
            allowance.spend(1 + len(member))
            key = member if is_true(case_sensitive) else member.lower()
        found.setdefault(key, item)
    return list(found.values())


def _min(
    allowance: Allowance, value: Any, case_sensitive: Any = False, attribute: Any = None
) -> Any:
    return _find_extreme(allowance, value, case_sensitive, attribute, lambda one, best: (one, best))


def _max(
    allowance: Allowance, value: Any, case_sensitive: Any = False, attribute: Any = None
) -> Any:
    return _find_extreme(allowance, value, case_sensitive, attribute, lambda one, best: (best, one))


def _find_extreme(
    allowance: Allowance,
    value: Any,
    case_sensitive: Any,
    attribute: Any,
    in_order: Callable[[Any, Any], tuple[Any, Any]],
) -> Any:
    items = to_items(value, allowance)
    keys = _sort_keys(allowance, _members(allowance, value, attribute), case_sensitive)
    if not keys:
        return MISSING
    best = 0
    for position, key in enumerate(keys):
        if is_less(*in_order(key, keys[best]), allowance):
            best = position
    return items[best]


def _replace(allowance: Allowance, value: Any, old: Any, new: Any, count: Any = None) -> str:
    text, before, after = (to_text(each, allowance) for each in (value, old, new))
    pay_for_search(text, before, allowance)
    most = -1 if count is None else to_count(count, _MAX_WIDTH)
    found = text.count(before)
    allowance.spend((found if most < 0 else min(found, most)) * len(after))
    return text.replace(before, after, most)


def _trim(allowance: Allowance, value: Any, chars: Any = None) -> Any:
    return METHODS["strip"](allowance, to_text(value, allowance), chars)


def _truncate(
    allowance: Allowance,
    value: Any,
    length: Any = 255,
    killwords: Any = False,
    end: Any = "...",
) -> str:
    text, ending = to_text(value, allowance), to_text(end, allowance)
    most = to_count(length, _MAX_WIDTH)
    if len(text) <= most + _LEEWAY:
        return text
    kept = text[: max(most - len(ending), 0)]
    return (kept if is_true(killwords) else kept.rsplit(" ", 1)[0]) + ending


def _shorten(allowance: Allowance, value: Any, limit: Any, link: Any = "") -> str:
    texts = to_text(value, allowance), to_text(link, allowance)
    return shorten(texts[0], to_count(limit, _MAX_WIDTH), texts[1])


def _tojson(allowance: Allowance, value: Any) -> str:
    allowance.pay_for(value)
    return json.dumps(value, ensure_ascii=False, default=_refuse)


def _refuse(_value: object) -> None:
    raise TypeError("a missing value cannot be converted to JSON")


FILTERS: Mapping[str, Callable[..., Any]] = {
    "abs": _abs,
    "capitalize": _on_text(str.capitalize),
    "count": _length,
    "d": _default,
    "default": _default,
    "first": _first,
    "float": _float,
    "int": _int,
    "items": METHODS["items"],
    "join": _join,
    "last": _last,
    "length": _length,
    "list": _list,
    "lower": _on_text(str.lower),
    "max": _max,
    "min": _min,
    "replace": _replace,
    "reverse": _reverse,
    "round": _round,
    "shorten": _shorten,
    "sort": _sort,
    "string": _on_text(str),
    "sum": _sum,
    "title": _on_text(do_title),
    "tojson": _tojson,
    "trim": _trim,
    "truncate": _truncate,
    "unique": _unique,
    "upper": _on_text(str.upper),
    "wordcount": _on_text(lambda text: len(text.split())),
}
