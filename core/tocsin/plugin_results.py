"""Checks of what plugins return, and when; each message names the method with its file and line."""

from __future__ import annotations

import asyncio
import inspect
import types
from collections.abc import AsyncGenerator, Callable, Hashable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import fields
from datetime import timedelta
from functools import cache
from types import FrameType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import structlog

from tocsin.errors import TryLater
from tocsin.model import Covered, Page, Rejected
from tocsin.plugin_health import get_plugin_health

SLOW_AFTER = timedelta(minutes=2)
"""The wait for a page after which a provider is degraded."""
PAGE_LIMIT = timedelta(minutes=10)
"""The wait for a page after which a read is given up."""
_DEFECT = "slow page"
_log = structlog.get_logger()
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
    for name, exact, annotation, may_be_empty in _list_fields(cast("Hashable", kind)):
        value = getattr(made, name)
        if type(value) in exact or (may_be_empty and value == ()):
            continue
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


async def iterate_pages(
    method: Callable[..., AsyncGenerator[Page, None]], provider: str, *arguments: Any
) -> AsyncGenerator[Page, None]:
    """Yield the pages of a method of a provider; close this generator if you do not finish it.

    Raises TypeError if it yields something else, and TryLater if a page takes too long.
    """
    reading = method(*arguments)
    if not hasattr(reading, "__anext__"):
        raise TypeError(f"{describe_method(method)} returned {reading!r:.100}, not its pages")
    health, path = get_plugin_health(), f"providers.{provider}"

    def note_slow() -> None:
        described, waited = _describe_reading(method, reading), _format_minutes(SLOW_AFTER)
        reason = f"{described} has yielded no page for {waited}"
        if health.mark(path, _DEFECT, reason):
            _log.warning("page overdue", provider=provider, reason=reason)

    async with aclosing(reading):
        while True:
            slow = asyncio.get_running_loop().call_later(SLOW_AFTER.total_seconds(), note_slow)
            try:
                async with asyncio.timeout(PAGE_LIMIT.total_seconds()) as limit:
                    page = await anext(reading)
            except StopAsyncIteration:
                health.clear(path, _DEFECT)
                return
            except TimeoutError:
                if limit.expired():
                    waited = f"yielded no page within {_format_minutes(PAGE_LIMIT)}"
                    raise TryLater(f"{describe_method(method)} {waited}") from None
                raise
            finally:
                slow.cancel()
            health.clear(path, _DEFECT)
            _require_page(page, lambda: _describe_reading(method, reading))
            yield page


def _require_page(page: object, describe: Callable[[], str]) -> None:
    """Raise TypeError unless this is a page whose incidents can be looked at one by one."""
    if not isinstance(page, Page):
        raise TypeError(f"{describe()} yielded {page!r:.100}, not a `Page`")
    if not isinstance(page.next_position, Mapping):
        found = f"`next_position` {page.next_position!r:.100}, not a mapping"
        raise TypeError(f"{describe()} yielded a `Page` with {found}")
    kinds = {"incidents": object, "rejected": Rejected, "covered": Covered, "incomplete": str}
    for name, kind in kinds.items():
        values: object = getattr(page, name)
        if not isinstance(values, list | tuple) or not all(isinstance(v, kind) for v in values):
            items = "incidents" if kind is object else f"`{kind.__name__}`"
            found = f"`{name}` {values!r:.100}, not a tuple of {items}"
            raise TypeError(f"{describe()} yielded a `Page` with {found}")
    if not isinstance(page.records, int) or not isinstance(page.further_rejected, int):
        found = "`records` or `further_rejected` that is not an integer"
        raise TypeError(f"{describe()} yielded a `Page` with {found}")


def _describe_reading(method: Callable[..., Any], reading: object) -> str:
    """Return the method with the line at which its generator is now."""
    frame: FrameType | None = getattr(reading, "ag_frame", None)
    if frame is None or frame.f_code is not getattr(method, "__code__", None):
        return describe_method(method)
    return describe_method(method, frame.f_lineno)


def _format_minutes(limit: timedelta) -> str:
    return f"{limit / timedelta(minutes=1):g} minutes"


@cache
def _list_fields(kind: Any) -> Sequence[tuple[str, frozenset[type], Any, bool]]:
    """Return the fields with their types: first those that match without a closer look.

    The last member tells whether an empty tuple matches.
    """
    hints = get_type_hints(kind)
    chosen = ((each.name, hints[each.name]) for each in fields(kind))
    return [(name, _list_exact(hint), hint, get_origin(hint) is tuple) for name, hint in chosen]


def _list_exact(annotation: Any) -> frozenset[type]:
    origin = get_origin(annotation)
    members = get_args(annotation) if origin in (Union, types.UnionType) else (annotation,)
    return frozenset(one for one in members if isinstance(one, type))


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
