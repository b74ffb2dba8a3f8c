"""Allowance of one evaluation: units of work, and processor time.

A unit is an evaluated template node, an item or a character. Units bound the memory, and are the
same on every machine. Their cost differs, so time is bounded as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from math import inf
from time import thread_time
from types import NoneType
from typing import Any, Self

from jinja2 import Undefined

# reading the thread's clock takes as long as rendering an expression
_UNITS_BETWEEN_LOOKS = 1_000
_OF_CONTAINER = 16  # units: an empty object takes as much memory as a text of that length
_EMPTY: dict[str, str] = {}
_VIEWS = (type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items()))
_WRITTEN = (str, int, float, range, NoneType, Undefined)
_COLLECTIONS: tuple[type[Collection[Any]], ...] = (dict, list, tuple, set, frozenset, *_VIEWS)


class AllowanceExhausted(Exception):  # noqa: N818 - a state, not a mistake
    """An evaluation exceeds its allowance."""


class Allowance:
    """Remaining allowance of the evaluation inside its `with` block."""

    __slots__ = ("_deadline", "_next_look", "_seconds", "_token", "_units")
    _token: Token[Allowance]

    def __init__(self, units: int, seconds: float) -> None:
        self._units = units
        self._next_look = max(units - _UNITS_BETWEEN_LOOKS, 0)
        self._seconds = seconds
        self._deadline = inf  # until the first check, which a short evaluation never reaches

    def __enter__(self) -> Self:
        self._token = _current.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)

    def spend(self, units: int) -> None:
        """Spend units; `AllowanceExhausted` if units or time are exhausted.

        Raises TypeError for anything but a natural number: not-a-number would never end.
        """
        if type(units) is not int or units < 0:
            raise TypeError(f"the cost of a step is a natural number, not {units!r:.40}")
        self._units -= units
        if self._units < self._next_look:
            self.look()

    def look(self) -> None:
        """Raise `AllowanceExhausted` if units or time are exhausted."""
        if self._units < 0:
            raise AllowanceExhausted("this exceeds the limit of characters and items")
        self._next_look = max(self._units - _UNITS_BETWEEN_LOOKS, 0)
        now = thread_time()
        if self._deadline == inf:
            self._deadline = now + self._seconds
        elif now > self._deadline:
            raise AllowanceExhausted(f"this takes longer than {self._seconds * 1_000:.0f} ms")

    def pay_for(self, value: Any) -> None:
        """Pay for the full size of a value if written out.

        A list that contains another list twice is small in memory, and repeating that doubles its
        written size each time; the written size counts.
        """
        if isinstance(value, str):
            self.spend(1 + len(value))
            return
        waiting, units = [value], 0
        while waiting:
            each = waiting.pop()
            units += 1
            if isinstance(each, str):
                units += len(each)
            elif isinstance(each, int):
                units += each.bit_length() // 8
            elif isinstance(each, _COLLECTIONS):
                self.spend(_OF_CONTAINER + 2 * len(each))  # before its members are listed
                waiting.extend(each)
                if isinstance(each, dict):
                    waiting.extend(each.values())
            if units > _UNITS_BETWEEN_LOOKS:
                self.spend(units)
                units = 0
        self.spend(units)

    def prolong(self, seconds: float) -> None:
        """Extend the time limit."""
        self._deadline += seconds


_current: ContextVar[Allowance] = ContextVar("allowance")


def spend(units: int) -> bool:
    """Spend `units` of the current evaluation's allowance; return True.

    Raises `AllowanceExhausted`, and `LookupError` outside of any evaluation: compilation must not
    do costly work.
    """
    _current.get().spend(units)
    return True


def measure(value: Any) -> None:
    """Pay for reading `value` itself, without its members."""
    if isinstance(value, str):
        _current.get().spend(len(value))
    elif isinstance(value, _COLLECTIONS):
        allowance = _current.get()
        allowance.spend(len(value))
        allowance.look()  # its members may be large as well


def measured(value: Any) -> Any:
    """Return `value` after paying for reading it."""
    measure(value)
    return value


def charge(value: Any) -> Any:
    """Return `value` after paying for its full size if written out."""
    _current.get().pay_for(value)
    return value


def require_data(value: Any) -> Any:
    """Return `value`, whose text shows its content alone.

    Raises TypeError for functions, iterators and objects: their text holds memory addresses.
    """
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting.extend((*each.keys(), *each.values()))
        elif isinstance(each, _COLLECTIONS):
            waiting.extend(each)
        elif not isinstance(each, _WRITTEN):
            raise TypeError(
                f"a {type(each).__name__} cannot be rendered; only JSON values can be rendered"
            )
        _current.get().spend(1)
    return value


@contextmanager
def pause() -> Iterator[None]:
    """Stop the clock of the current evaluation, if any."""
    allowance = _current.get(None)
    started = thread_time()
    try:
        yield
    finally:
        if allowance:
            allowance.prolong(thread_time() - started)
