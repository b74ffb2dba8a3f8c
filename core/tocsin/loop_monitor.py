"""Monitor of an event loop, which measures the callbacks that hold it and takes their stacks."""

from __future__ import annotations

import asyncio
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Self, TypeVar

T = TypeVar("T")
_INTERVAL = 0.2
_STILL_HELD = 10.0
_MOST_STACKS = 50
_LOCK_TURNS = 5
_CALLBACK = asyncio.Handle._run.__code__  # noqa: SLF001 - the frame that is new for each callback


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One call on the stack."""

    file: str
    line: int
    function: str
    module: str
    instance: object = field(default=None, repr=False, compare=False)
    """The `self` of a method."""

    def __str__(self) -> str:
        """Return the call as in a traceback."""
        return f'File "{self.file}", line {self.line}, in {self.function}'


Stack = tuple[StackFrame, ...]
"""Calls under way, the innermost first."""


@dataclass(frozen=True, slots=True)
class Stall:
    """A time during which one callback kept the loop from all other work."""

    stacks: tuple[tuple[Stack, float], ...]
    """The stacks that were seen, with the seconds of each."""
    ended_at: float
    """When it was last seen, by `time.monotonic`."""
    is_over: bool = True

    @property
    def seconds(self) -> float:
        """The length of the stall, without what other threads and processes took."""
        return sum(seconds for _, seconds in self.stacks)

    def attribute(self, find: Callable[[Stack], T]) -> dict[T, tuple[float, Stack]]:
        """Return the seconds and the longest stack of each culprit that `find` names."""
        found: dict[T, tuple[float, Stack]] = {}
        for stack, seconds in sorted(self.stacks, key=lambda seen: -seen[1]):
            culprit = find(stack)
            before, longest = found.get(culprit, (0.0, stack))
            found[culprit] = before + seconds, longest
        return found


class LoopMonitor:
    """Reports callbacks that hold the running event loop for longer than `threshold` seconds.

    A thread looks at the stack of the loop's thread at each `interval`; it never wakes an idle
    loop. The seconds of a stall are short by up to two intervals. They omit the time in which
    other processes used the processor, or other threads the interpreter.

    `report` is called in that thread: when a stall is over, and once before if it lasts long.
    """

    def __init__(
        self,
        report: Callable[[Stall], None],
        *,
        threshold: float = 0.5,
        interval: float = _INTERVAL,
    ) -> None:
        self.latest: Stall | None = None
        """The last stall, or the present one as far as it was seen."""
        self._report = report
        self._threshold = threshold
        self._interval = interval
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._turns: _Turns | None = None
        self._callback: tuple[FrameType, int] | None = None
        self._stacks: dict[Stack, float] = {}
        self._is_reported = False

    def __enter__(self) -> Self:
        """Start to watch the loop that runs the present task."""
        runner = _find_runner()
        self._turns = runner and _Turns(asyncio.get_running_loop(), runner)
        arguments = (threading.get_ident(), threading.get_native_id())
        self._thread = threading.Thread(
            target=self._watch, args=arguments, name="tocsin-loop-monitor", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop; a stall that has been seen is reported first."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self, loop_thread: int, native_id: int) -> None:
        processor = _ProcessorTime(loop_thread, native_id)
        looked_at = time.monotonic()
        while not self._stopped.wait(self._interval):
            now = time.monotonic()
            elapsed, looked_at = now - looked_at, now
            frame = sys._current_frames().get(loop_thread)  # noqa: SLF001 - made for debuggers
            callback = self._find_callback(frame)
            run, turns = processor.take_run()
            queued = 0.0 if callback is None else processor.take_queued()
            if elapsed <= 2 * self._interval:
                unwatched, watched = 0.0, max(0.0, elapsed - queued)
            else:
                # Someone held the interpreter's lock, for which this thread woke many times, or
                # this thread got no processor. Of the former, the loop's part is what it ran.
                unwatched, watched = run if turns > _LOCK_TURNS else 0.0, 0.0
            self._see(frame, callback, watched, unwatched, now)
        self._end(time.monotonic())

    def _find_callback(self, frame: FrameType | None) -> tuple[FrameType, int] | None:
        """Return what identifies the callback that the loop runs; None if it waits."""
        if self._turns is not None:
            return self._turns.find_callback(frame)
        while frame is not None and frame.f_code is not _CALLBACK:
            frame = frame.f_back
        return frame and (frame, 0)

    def _see(
        self,
        frame: FrameType | None,
        callback: tuple[FrameType, int] | None,
        watched: float,
        unwatched: float,
        now: float,
    ) -> None:
        if callback is None or callback != self._callback:
            self._end(now)
            self._callback, watched = callback, 0.0
        seconds = watched + unwatched
        if frame is None or callback is None or not seconds:
            return
        end = callback[0] if self._turns is None else self._turns.runner
        stack = tuple(_list_frames(frame, end))
        if stack in self._stacks or len(self._stacks) < _MOST_STACKS:
            self._stacks[stack] = self._stacks.get(stack, 0.0) + seconds
        stall = self._describe(now, is_over=False)
        if stall.seconds >= self._threshold:
            self.latest = stall
            if stall.seconds >= _STILL_HELD and not self._is_reported:
                self._is_reported = True
                self._report(stall)

    def _end(self, now: float) -> None:
        """Report the callback that was under way, if it held the loop for too long."""
        stall = self._describe(now, is_over=True)
        self._callback, self._stacks, self._is_reported = None, {}, False
        if stall.seconds >= self._threshold:
            self.latest = stall
            self._report(stall)

    def _describe(self, now: float, *, is_over: bool) -> Stall:
        return Stall(tuple(self._stacks.items()), now, is_over)


class _Turns:
    """Turns of a loop that is written in C, such as uvloop's, which has no frame of its own.

    All steps of a task have the same outermost frame, so the turns tell them apart.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, runner: FrameType) -> None:
        self._loop = loop
        self.runner = runner
        self._count = 0
        self._is_awaited = False

    def find_callback(self, frame: FrameType | None) -> tuple[FrameType, int] | None:
        """Return the outermost frame of the callback, and the turn; None if the loop waits."""
        while frame is not None and frame.f_back is not self.runner:
            frame = frame.f_back
        if frame is None:
            return None
        found = frame, self._count
        if not self._is_awaited:
            self._is_awaited = True
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._end_turn)
        return found

    def _end_turn(self) -> None:
        self._count += 1
        self._is_awaited = False


class _ProcessorTime:
    """Use of the processor by the loop's thread and by the thread that watches it."""

    def __init__(self, loop_thread: int, native_id: int) -> None:
        self._clock = _find_clock(loop_thread)
        self._path = Path(f"/proc/self/task/{native_id}/schedstat")
        self._run = self._queued = 0.0
        self._turns = 0
        self.take_run()

    def take_run(self) -> tuple[float, int]:
        """Return the seconds that the loop ran since the last call, and how often this thread woke.

        Zero where the system does not tell.
        """
        run, turns = self._run, self._turns
        if self._clock is not None:
            with suppress(OSError):
                self._run = time.clock_gettime(self._clock)
            self._turns = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        return self._run - run, self._turns - turns

    def take_queued(self) -> float:
        """Return the seconds that the loop waited for a processor since the last call."""
        queued = self._queued
        with suppress(OSError, ValueError):
            self._queued = int(self._path.read_bytes().split()[1]) / 1e9
        return self._queued - queued


def _find_clock(thread: int) -> int | None:
    """Return the clock of the processor time of a thread; None where there is none."""
    if sys.platform != "linux":
        return None
    return time.pthread_getcpuclockid(thread)


def _find_runner() -> FrameType | None:
    """Return the frame that runs the loop if the loop is written in C, otherwise None."""
    task = asyncio.current_task()
    frame: FrameType | None = getattr(task and task.get_coro(), "cr_frame", None)
    runner = frame and frame.f_back
    return None if runner is None or runner.f_code is _CALLBACK else runner


def _list_frames(frame: FrameType | None, end: FrameType) -> Iterator[StackFrame]:
    """Yield the calls of the loop's callback, up to the frame that calls it."""
    while frame is not None and frame is not end:
        code = frame.f_code
        instance = frame.f_locals.get("self") if "self" in code.co_varnames[:1] else None
        module = str(frame.f_globals.get("__name__", ""))
        yield StackFrame(code.co_filename, frame.f_lineno, code.co_qualname, module, instance)
        frame = frame.f_back


def format_stack(stack: Sequence[StackFrame]) -> str:
    """Return a stack as text, one call a line."""
    return "\n".join(map(str, stack))
