"""Time limits of tasks that share one timer."""

from __future__ import annotations

import asyncio
from time import monotonic
from types import TracebackType


class TimeLimits:
    """Limits the time of any number of tasks, by one timer for all of them.

    `asyncio.timeout` starts and cancels a timer of its own, which takes about as long as the
    signature of a webhook.
    """

    def __init__(self) -> None:
        self._limits: set[TimeLimit] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._wakes_at = 0.0

    def limit(self, seconds: float) -> TimeLimit:
        """Return a context that raises TimeoutError in its task after this time."""
        return TimeLimit(self, seconds)

    def add(self, limit: TimeLimit) -> None:
        """Follow a limit from now on."""
        self._limits.add(limit)
        if self._timer is None or limit.ends_at < self._wakes_at:
            self._wake_at(limit.ends_at)

    def remove(self, limit: TimeLimit) -> None:
        """Follow a limit no longer; the timer finds out by itself."""
        self._limits.discard(limit)

    def _wake_at(self, moment: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._wakes_at = moment
        self._timer = asyncio.get_running_loop().call_later(moment - monotonic(), self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = monotonic()
        for limit in [each for each in self._limits if each.ends_at <= now]:
            self._limits.discard(limit)
            limit.expire()
        if self._limits:
            self._wake_at(min(limit.ends_at for limit in self._limits))


class TimeLimit:
    """The time limit of one task; use it as a context once."""

    __slots__ = ("_cancelling", "_is_over", "_limits", "_task", "ends_at")

    def __init__(self, limits: TimeLimits, seconds: float) -> None:
        self._limits = limits
        self.ends_at = monotonic() + seconds
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._is_over = False

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        assert self._task is not None  # noqa: S101 - coroutines run in tasks
        self._cancelling = self._task.cancelling()
        self._limits.add(self)

    def expire(self) -> None:
        """Cancel the task."""
        assert self._task is not None  # noqa: S101 - it was entered
        self._is_over = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._limits.remove(self)
        if not self._is_over or self._task is None:
            return
        # as `asyncio.timeout` does: others may have cancelled the task as well
        was_only_this = self._task.uncancel() <= self._cancelling
        if was_only_this and kind is asyncio.CancelledError:
            raise TimeoutError from error
