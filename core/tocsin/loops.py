"""Background loops that survive failures, and the heartbeats that show whether they work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import suppress
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from tocsin.clock import Clock
from tocsin.errors import PluginFailure, TocsinError

PLUGIN_FAILURES = (Exception, asyncio.CancelledError, SystemExit)
"""Exceptions of a plugin that affect only the plugin; check `was_cancelled` before you swallow one.
"""
SILENCE = timedelta(seconds=30)
"""How long a loop whose steps are short may go without completing one."""
_PAUSE = timedelta(seconds=5)
T = TypeVar("T")
_log = structlog.get_logger()


class Heartbeat:
    """Last sign that one loop works."""

    def __init__(self, name: str, silence: timedelta, monotonic: Callable[[], float]) -> None:
        self.name = name
        self._silence = silence.total_seconds()
        self._monotonic = monotonic
        self._beat_at = self._failed_at = monotonic()
        self._failing_since: float | None = None

    def beat(self) -> None:
        """Record that the loop works."""
        self._beat_at = self._monotonic()
        self._failing_since = None

    def fail(self) -> None:
        """Record that a step failed."""
        self._failed_at = self._monotonic()
        self._failing_since = self._failing_since or self._failed_at

    @property
    def is_stalled(self) -> bool:
        """Whether the loop was silent for longer than it may be, or has only failed for a while."""
        now = self._monotonic()
        failing = 0 if self._failing_since is None else now - self._failing_since
        return now - self._beat_at > self._silence or failing > SILENCE.total_seconds()

    @property
    def is_silent(self) -> bool:
        """Whether the loop has neither worked nor failed for longer than it may be silent."""
        return self._monotonic() - max(self._beat_at, self._failed_at) > self._silence


class Heartbeats:
    """Heartbeats of the running loops of a node."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._running: set[Heartbeat] = set()
        self._ticked_at = monotonic()

    def follow(self) -> None:
        """Follow the loops that this task, and the tasks that it creates, start from now on."""
        _HEARTBEATS.set(self)

    def add(self, name: str, silence: timedelta) -> Heartbeat:
        """Add a running loop, and return its heartbeat."""
        heartbeat = Heartbeat(name, silence, self._monotonic)
        self._running.add(heartbeat)
        return heartbeat

    def remove(self, heartbeat: Heartbeat) -> None:
        """Remove a loop that ended."""
        self._running.discard(heartbeat)

    def tick(self) -> None:
        """Record that the process runs; call it every few seconds.

        After a gap the process as a whole was frozen, and every loop begins again.
        """
        now = self._monotonic()
        if (gap := now - self._ticked_at) > SILENCE.total_seconds() / 2:
            _log.warning("node was frozen", seconds=round(gap))
            for heartbeat in self._running:
                heartbeat.beat()
        self._ticked_at = now

    def find_stalled(self) -> list[str]:
        """Return the names of the loops that have been silent for too long, sorted."""
        return sorted({each.name for each in self._running if each.is_stalled})

    def find_silent(self) -> list[str]:
        """Return the names of the loops that hang, not of those that only fail, sorted."""
        return sorted({each.name for each in self._running if each.is_silent})


_HEARTBEATS: ContextVar[Heartbeats] = ContextVar("heartbeats")
_HEARTBEAT: ContextVar[Heartbeat] = ContextVar("heartbeat")


def beat() -> None:
    """Record that the loop that runs this code works, in the middle of a long step."""
    if (heartbeat := _HEARTBEAT.get(None)) is not None:
        heartbeat.beat()


async def run_forever(
    step: Callable[[], Awaitable[None]],
    clock: Clock,
    what: str,
    *,
    silence: timedelta = SILENCE,
    pause: timedelta = timedelta(0),
    **facts: str,
) -> NoReturn:
    """Run steps until cancelled, each `pause` after the last; a failed step is logged and retried.

    The loop counts as stalled if it neither completes a step nor calls `beat` for `silence`, apart
    from its pauses, or if its steps only fail for `SILENCE`. A step that waits for long itself is
    not complete meanwhile, so a failure before it would count until the wait is over.
    """
    heartbeats = _HEARTBEATS.get(None) or Heartbeats()
    heartbeat = heartbeats.add(" ".join((what, *facts.values())), silence + pause)
    _HEARTBEAT.set(heartbeat)
    try:
        while True:
            try:
                await step()
                raise_if_cancelled()
                heartbeat.beat()
                if pause:
                    await clock.sleep(pause)
            except (Exception, asyncio.CancelledError) as error:
                if was_cancelled():
                    raise
                heartbeat.fail()
                _log_failure(f"{what} failed; retrying", error, facts)
                await clock.sleep(_PAUSE)
    finally:
        heartbeats.remove(heartbeat)


Loop = Callable[[], Coroutine[Any, Any, None]]
"""Starts a loop that ends only when it is cancelled."""


class LoopGroup:
    """Loops by name, which can be replaced while they run."""

    def __init__(self, loops: Mapping[str, Loop]) -> None:
        self._loops = dict(loops)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Run the loops until cancelled; afterwards they can be run again."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for name in self._loops:
                    self._start(name)
                await asyncio.Event().wait()
            finally:
                self._group = None
                self._running.clear()

    async def replace(self, gone: Collection[str], added: Mapping[str, Loop]) -> None:
        """End some loops, then start others in their place; the rest runs on."""
        ending = [self._running.pop(name) for name in gone if name in self._running]
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)
        for name in gone:
            self._loops.pop(name, None)
        self._loops.update(added)
        for name in added:
            self._start(name)

    def _start(self, name: str) -> None:
        if self._group is not None:
            self._running[name] = self._group.create_task(self._loops[name]())


async def run_unless_stopped(work: Coroutine[Any, Any, T], stop: asyncio.Event) -> T | None:
    """Return the result of `work`, None where it was cancelled because `stop` was set first."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else None
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.wait({working, stopping})


async def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`, which is not interrupted if the caller is cancelled."""
    working = asyncio.create_task(work)
    try:
        return await asyncio.shield(working)
    finally:
        await asyncio.wait({working})


async def wait_for_event(event: asyncio.Event, seconds: float) -> bool:
    """Return whether the event is set within this time.

    Raises CancelledError if the task was cancelled before, and something swallowed that.
    """
    raise_if_cancelled()
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):  # wait_for of Python 3.11 can swallow a cancellation
            await event.wait()
    return event.is_set()


def _log_failure(message: str, error: BaseException, facts: dict[str, str]) -> None:
    # an outage or a state, such as a lost lease, not a bug
    if isinstance(error, OSError | DBAPIError | PoolTimeout | TocsinError):
        reason = getattr(error, "orig", None) or error
        _log.warning(message, **facts, reason=str(reason))
    else:
        _log.error(message, **facts, exc_info=error)


def describe_plugin_failure(error: BaseException, *, late: str) -> str:
    """Return the reason of one of PLUGIN_FAILURES, after its notes; `late` is that of a timeout."""
    if isinstance(error, TimeoutError):
        return late
    reason = str(error) if isinstance(error, PluginFailure) else f"{type(error).__name__}: {error}"
    return "; ".join((*getattr(error, "__notes__", ()), reason))


def raise_if_cancelled() -> None:
    """Raise CancelledError if the current task was cancelled; call it between steps of a loop.

    A step may have swallowed the cancellation: `asyncio.wait_for` of Python 3.11, which libraries
    use, returns the result if that arrives at the same moment.
    """
    if was_cancelled():
        raise asyncio.CancelledError


def was_cancelled() -> bool:
    """Return whether the current task was cancelled, and not just code within it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
