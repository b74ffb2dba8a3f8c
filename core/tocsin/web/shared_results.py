"""Results that concurrent callers share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

T = TypeVar("T")
MAX_AGE = 2.0
"""How many seconds a result is used, counted from the start of its computation."""


class SharedResults:
    """Results by name; concurrent callers share one computation."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._known: dict[str, tuple[float, asyncio.Task[Any]]] = {}

    async def load(
        self, name: str, compute: Callable[[], Coroutine[Any, Any, T]], max_age: float = MAX_AGE
    ) -> T:
        """Return the result of `compute`, or a result that is at most `max_age` seconds old.

        Failures are not kept.
        """
        now = self._monotonic()
        known = self._known.get(name)
        if known is None or not _is_usable(known[1], now - known[0], max_age):
            known = self._known[name] = now, asyncio.create_task(compute())
        # the cancellation of one caller must not affect the others
        return cast("T", await asyncio.shield(known[1]))

    def expire(self) -> None:
        """Discard all results after a change, so that the next result shows the change."""
        self._known.clear()


def _is_usable(task: asyncio.Task[Any], age: float, max_age: float) -> bool:
    if not task.done():
        return True
    return age < max_age and not task.cancelled() and task.exception() is None
