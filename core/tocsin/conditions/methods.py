"""Methods of texts and objects that expressions can call.

Each takes the allowance, the value and its arguments. A missing value stays missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tocsin.conditions.values import MISSING, describe, pay_for_search
from tocsin.sandbox import Allowance

_MAX_SET = 100  # characters that `strip` looks for


def _of_text(name: str) -> Callable[..., Any]:
    """Return a method of texts that takes no argument and reads the text once."""
    method = getattr(str, name)

    def call(allowance: Allowance, value: Any) -> Any:
        if value is MISSING:
            return value
        return method(_expect_text(value, allowance))

    return call


def _expect_text(value: Any, allowance: Allowance) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {describe(value)}")
    allowance.spend(1 + len(value))
    return value


def _with_word(name: str) -> Callable[..., Any]:
    """Return a method of texts that takes a text, and compares it at one place."""
    method = getattr(str, name)

    def call(allowance: Allowance, value: Any, word: str) -> Any:
        if value is MISSING:
            return value
        return method(_expect_text(value, allowance), _expect_text(word, allowance))

    return call


def _stripping(name: str) -> Callable[..., Any]:
    method = getattr(str, name)

    def call(allowance: Allowance, value: Any, characters: str | None = None) -> Any:
        if value is MISSING:
            return value
        if characters is not None and len(_expect_text(characters, allowance)) > _MAX_SET:
            raise ValueError(f"{name} can remove at most {_MAX_SET} different characters")
        return method(_expect_text(value, allowance), characters)

    return call


def _split(allowance: Allowance, value: Any, separator: str | None = None) -> Any:
    if value is MISSING:
        return value
    text = _expect_text(value, allowance)
    if separator is None:
        return text.split()
    pay_for_search(text, _expect_text(separator, allowance), allowance)
    return text.split(separator)


def _of_object(method: Callable[[dict[str, Any]], Any]) -> Callable[..., Any]:
    def call(allowance: Allowance, value: Any) -> Any:
        if value is MISSING:
            return value
        if not isinstance(value, dict):
            raise TypeError(f"expected an object, found {describe(value)}")
        allowance.spend(1 + 2 * len(value))
        return method(value)

    return call


def _items(value: dict[str, Any]) -> list[list[Any]]:
    return [[name, member] for name, member in value.items()]


def _keys(value: dict[str, Any]) -> list[str]:
    return list(value)


def _values(value: dict[str, Any]) -> list[Any]:
    return list(value.values())


def _get(_allowance: Allowance, value: Any, name: str, default: Any = None) -> Any:
    if value is MISSING:
        return value
    if not isinstance(value, dict) or not isinstance(name, str):
        raise TypeError("get requires the name of a member of an object")
    return value.get(name, default)


METHODS: Mapping[str, Callable[..., Any]] = {
    **{
        name: _of_text(name)
        for name in ("capitalize", "casefold", "lower", "splitlines", "title", "upper")
    },
    **{
        name: _with_word(name)
        for name in ("endswith", "removeprefix", "removesuffix", "startswith")
    },
    **{name: _stripping(name) for name in ("lstrip", "rstrip", "strip")},
    "get": _get,
    "items": _of_object(_items),
    "keys": _of_object(_keys),
    "split": _split,
    "values": _of_object(_values),
}
