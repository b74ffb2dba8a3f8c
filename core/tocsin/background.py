"""Background work that yields to the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import thread_time
from typing import Any, TypeVar

T = TypeVar("T")
MAX_REST = 4
"""Seconds of rest for each second of work while the event loop has other work."""
_TURNS = 3
_IDLE_SECONDS = 0.0002  # of processor time, for turns of a loop that has nothing else to do


class BackgroundWork:
    """Runs functions in a thread, and rests after those that others have waited for.

    A function that runs Python code takes the interpreter from the loop, which answers callers and
    sends deliveries. Keep each call to a few milliseconds.
    """

    def __init__(self) -> None:
        self._rest = 0

    @property
    def is_yielding(self) -> bool:
        """Whether the loop had other work after the last call."""
        return bool(self._rest)

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Return the result of the function, after a rest if the loop has other work."""
        result, seconds = await asyncio.to_thread(_measure, function, *args)
        began = thread_time()
        for _ in range(_TURNS):  # what has waited for the interpreter runs now
            await asyncio.sleep(0)
        self._rest = MAX_REST if thread_time() - began > _IDLE_SECONDS else 0
        await self.rest(seconds)
        return result

    async def rest(self, seconds: float) -> None:
        """Rest after work that took this time, if the loop had other work after the last call."""
        if self._rest:
            await asyncio.sleep(seconds * self._rest)


def _measure(function: Callable[..., T], *args: Any) -> tuple[T, float]:
    """Return the result, and the processor time that it took."""
    began = thread_time()
    result = function(*args)
    return result, thread_time() - began
