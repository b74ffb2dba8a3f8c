"""What one evaluation may use: units of work, and time on the processor.

A unit is a node of the template that is run, an item, or a character. Units bound the memory, and
they are the same on every machine. What a unit costs differs, so there is a bound of time as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from math import inf
from time import thread_time
from typing import Any, Self

# Reading the thread's clock takes as long as rendering an expression
_UNITS_BETWEEN_LOOKS = 1_000
_EMPTY: dict[str, str] = {}
_VIEWS = (type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items()))
_COLLECTIONS: tuple[type[Collection[Any]], ...] = (dict, list, tuple, set, frozenset, *_VIEWS)


class AllowanceExhausted(Exception):  # noqa: N818 - it says what the allowance is
    """An evaluation wants more than it is allowed."""


class Allowance:
    """What is left to the evaluation that runs inside `with` this."""

    __slots__ = ("_deadline", "_next_look", "_seconds", "_token", "_units")
    _token: Token[Allowance]

    def __init__(self, units: int, seconds: float) -> None:
        self._units = units
        self._next_look = max(units - _UNITS_BETWEEN_LOOKS, 0)
        self._seconds = seconds
        self._deadline = inf  # until the first look, which a short evaluation never comes to

    def __enter__(self) -> Self:
        self._token = _current.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)

    def spend(self, units: int) -> None:
        """Raise `AllowanceExhausted` where fewer units are left, or the time is over."""
        self._units -= units
        if self._units < self._next_look:
            self.look()

    def look(self) -> None:
        """Raise `AllowanceExhausted` where units or time are used up."""
        if self._units < 0:
            raise AllowanceExhausted(
                "this goes through more, or makes more, than one evaluation may"
            )
        self._next_look = max(self._units - _UNITS_BETWEEN_LOOKS, 0)
        now = thread_time()
        if self._deadline == inf:
            self._deadline = now + self._seconds
        elif now > self._deadline:
            raise AllowanceExhausted(f"this takes longer than {self._seconds * 1_000:.0f} ms")

    def prolong(self, seconds: float) -> None:
        """Move the end of the time."""
        self._deadline += seconds


_current: ContextVar[Allowance] = ContextVar("allowance")


def spend(units: int) -> bool:
    """Take `units` from what the present evaluation has left; return True.

    Raises `AllowanceExhausted`, and `LookupError` outside of any evaluation: nothing that costs is
    done     while a template is compiled.
    """
    _current.get().spend(units)
    return True


def measure(value: Any) -> None:
    """Pay for looking at `value` as it is, without going into what it contains."""
    if isinstance(value, str):
        _current.get().spend(len(value))
    elif isinstance(value, _COLLECTIONS):
        allowance = _current.get()
        allowance.spend(len(value))
        allowance.look()  # what it contains may be large as well


def measured(value: Any) -> Any:
    """Return `value`, having paid for looking at it."""
    measure(value)
    return value


def charge(value: Any) -> Any:
    """Return `value`, having paid for everything that would be seen if it were written out.

    A list that contains one other list twice is small in memory and doubles whenever that is done
    again; written out, its size is what counts.
    """
    allowance = _current.get()
    waiting = [value]
    while waiting:
        each = waiting.pop()
        allowance.spend(1)
        if isinstance(each, str):
            allowance.spend(len(each))
        elif isinstance(each, int):
            allowance.spend(each.bit_length() // 8)
        elif isinstance(each, dict):
            waiting.extend(each)
            waiting.extend(each.values())
        elif isinstance(each, _COLLECTIONS):
            waiting.extend(each)
    return value


@contextmanager
def pause() -> Iterator[None]:
    """Let the time stand still for the present evaluation, if there is one."""
    allowance = _current.get(None)
    started = thread_time()
    try:
        yield
    finally:
        if allowance:
            allowance.prolong(thread_time() - started)
