"""Tests after `is`, and by name in `select`, as in Jinja2.

Each takes the allowance, the value and its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tocsin.conditions.values import (
    MISSING,
    are_equal,
    is_at_most,
    is_in,
    is_less,
    is_number,
    to_number,
)
from tocsin.sandbox import Allowance


def _is_of(*kinds: type) -> Callable[[Allowance, Any], bool]:
    return lambda _allowance, value: type(value) in kinds


def _is(constant: bool | None) -> Callable[[Allowance, Any], bool]:
    return lambda _allowance, value: value is constant


def _is_defined(_allowance: Allowance, value: Any) -> bool:
    return value is not MISSING


def _is_undefined(_allowance: Allowance, value: Any) -> bool:
    return value is MISSING


def _is_lower(allowance: Allowance, value: Any) -> bool:
    return _in_case(allowance, value, str.islower)


def _is_upper(allowance: Allowance, value: Any) -> bool:
    return _in_case(allowance, value, str.isupper)


def _in_case(allowance: Allowance, value: Any, has_case: Callable[[str], bool]) -> bool:
    if not isinstance(value, str):
        return False
    allowance.spend(1 + len(value))
    return has_case(value)


def _is_even(allowance: Allowance, value: Any) -> bool:
    return _is_divisible_by(allowance, value, 2)


def _is_odd(allowance: Allowance, value: Any) -> bool:
    return value is not MISSING and not _is_divisible_by(allowance, value, 2)


def _is_divisible_by(_allowance: Allowance, value: Any, num: Any) -> bool:
    return value is not MISSING and to_number(value) % to_number(num) == 0


def _equals(allowance: Allowance, value: Any, other: Any) -> bool:
    return are_equal(value, other, allowance)


def _differs(allowance: Allowance, value: Any, other: Any) -> bool:
    return not are_equal(value, other, allowance)


def _is_less(allowance: Allowance, value: Any, other: Any) -> bool:
    return is_less(value, other, allowance)


def _is_greater(allowance: Allowance, value: Any, other: Any) -> bool:
    return is_less(other, value, allowance)


def _is_at_most(allowance: Allowance, value: Any, other: Any) -> bool:
    return is_at_most(value, other, allowance)


def _is_at_least(allowance: Allowance, value: Any, other: Any) -> bool:
    return is_at_most(other, value, allowance)


def _is_in(allowance: Allowance, value: Any, seq: Any) -> bool:
    return is_in(value, seq, allowance)


def _is_number(_allowance: Allowance, value: Any) -> bool:
    return is_number(value)


PREDICATES: Mapping[str, Callable[..., bool]] = {
    "boolean": _is_of(bool),
    "defined": _is_defined,
    "divisibleby": _is_divisible_by,
    "even": _is_even,
    "false": _is(constant=False),
    "float": _is_of(float),
    "in": _is_in,
    "integer": _is_of(int),
    "iterable": _is_of(list, str, dict),
    "lower": _is_lower,
    "mapping": _is_of(dict),
    "none": _is(constant=None),
    "number": _is_number,
    "odd": _is_odd,
    "sequence": _is_of(list, str, dict),
    "string": _is_of(str),
    "true": _is(constant=True),
    "undefined": _is_undefined,
    "upper": _is_upper,
    **dict.fromkeys(("==", "eq", "equalto"), _equals),
    **dict.fromkeys(("!=", "ne"), _differs),
    **dict.fromkeys(("<", "lt", "lessthan"), _is_less),
    **dict.fromkeys((">", "gt", "greaterthan"), _is_greater),
    **dict.fromkeys(("<=", "le"), _is_at_most),
    **dict.fromkeys((">=", "ge"), _is_at_least),
}
