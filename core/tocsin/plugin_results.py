"""Checks of what plugins return; each message names the method with its file and line."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


def describe_method(method: Callable[..., Any], line: int | None = None) -> str:
    """Return the name of a method with its file and line: that of its definition by default."""
    function = inspect.unwrap(getattr(method, "__func__", method))
    name = getattr(function, "__qualname__", repr(function))
    code = getattr(function, "__code__", None)
    if code is None:
        return f"`{name}`"
    return f"`{name}` ({code.co_filename}, line {line or code.co_firstlineno})"


def require_kind(result: object, kind: type[T], method: Callable[..., Any]) -> T:
    """Return the result of a method; TypeError if it has another type."""
    if not isinstance(result, kind):
        wrong = f"{result!r:.100}, not a `{kind.__name__}`"
        raise TypeError(f"{describe_method(method)} returned {wrong}")
    return result


def require_items(result: object, method: Callable[..., Any]) -> Sequence[object]:
    """Return the result of a method that returns several; TypeError if it is no sequence."""
    # `require_kind` creates no instance of the class.
    return require_kind(result, Sequence, method)  # type: ignore[type-abstract]


def require_result(result: object, kind: type[T], method: Callable[..., Any]) -> T:
    """Return the result of a method; TypeError if it or one of its fields has another type."""
    made = require_kind(result, kind, method)
    for name, annotation in _list_fields(cast("Hashable", kind)):
        value = getattr(made, name)
        if not _matches(value, annotation):
            place = f"`{name}` {value!r:.100}, not {_describe_type(annotation)}"
            raise TypeError(f"{describe_method(method)} returned a `{kind.__name__}` with {place}")
    return made


def find_wrong_signature(method: Callable[..., Any], base: Callable[..., Any]) -> str | None:
    """Return why a method does not fit that of its base class; None if it does."""
    function = inspect.unwrap(method)
    if not inspect.isfunction(function):
        return None
    if inspect.iscoroutinefunction(base) and not inspect.iscoroutinefunction(function):
        return f"{describe_method(method)} is no coroutine function; write `async def`"
    yields = "AsyncGenerator" in str(base.__annotations__.get("return", ""))
    if yields and (inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function)):
        advice = "write `async def` and `yield`"
        return f"{describe_method(method)} is no async generator function; {advice}"
    return None


@cache
def _list_fields(kind: Any) -> Sequence[tuple[str, Any]]:
    hints = get_type_hints(kind)
    return [(field.name, hints[field.name]) for field in fields(kind)]


def _matches(value: object, annotation: Any) -> bool:
    """Return whether a value has a type, as far as that can be seen without its contents' types.

    A list may stand for a tuple, and items of mappings are not looked at.
    """
    origin = get_origin(annotation) or annotation
    if origin in (Union, types.UnionType):
        return any(_matches(value, one) for one in get_args(annotation))
    if origin is tuple:
        item, *_ = get_args(annotation)
        return isinstance(value, list | tuple) and all(_matches(one, item) for one in value)
    if isinstance(value, bool) and origin in (int, float):
        return False
    kinds = {None: types.NoneType, float: int | float}.get(origin, origin)
    return not isinstance(kinds, type | types.UnionType) or isinstance(value, kinds)


def _describe_type(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is tuple:
        return f"a tuple of `{_name(get_args(annotation)[0])}`"
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a mapping"
    if origin in (Union, types.UnionType):
        return " or ".join(f"`{_name(one)}`" for one in get_args(annotation))
    return f"`{_name(annotation)}`"


def _name(annotation: Any) -> str:
    if annotation is types.NoneType:
        return "None"
    return getattr(annotation, "__name__", str(annotation))
