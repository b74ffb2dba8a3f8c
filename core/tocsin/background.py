"""Background work that yields to the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import thread_time
from typing import Any, TypeVar

T = TypeVar("T")
MAX_REST = 4
"""Seconds of rest for each second of work while the event loop is busy."""
_IDLE, _BUSY = 0.1, 0.4
"""Shares of the loop in the processor time of both, also where other processes take the most."""


class BackgroundWork:
    """Runs functions in a thread, and rests between them while the event loop is busy.

    A function that runs Python code takes the interpreter from the loop, which answers callers and
    sends deliveries. Keep each call to a few milliseconds.
    """

    def __init__(self) -> None:
        self._rest = 0.0

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Return the result of the function, after a rest if the loop is busy."""
        began = thread_time()
        result, seconds = await asyncio.to_thread(_measure, function, *args)
        of_loop = thread_time() - began
        share = of_loop / max(of_loop + seconds, 1e-6)
        self._rest = MAX_REST * min(max((share - _IDLE) / (_BUSY - _IDLE), 0), 1)
        await self.rest(seconds)
        return result

    async def rest(self, seconds: float) -> None:
        """Rest after work that took this time, if the loop was busy during the last call."""
        if self._rest:
            await asyncio.sleep(seconds * self._rest)


def _measure(function: Callable[..., T], *args: Any) -> tuple[T, float]:
    """Return the result, and the processor time that it took."""
    began = thread_time()
    result = function(*args)
    return result, thread_time() - began
