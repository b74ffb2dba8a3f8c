"""Detection of plugin code that blocks the event loop during a rule."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import sys
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path

import tocsin
from tocsin.channels import Tracker
from tocsin.loop_monitor import LoopMonitor, Stack, StackFrame, Stall

LONGEST_BLOCK = 0.2
"""Seconds for which a plugin may hold the event loop."""
_INTERVAL = 0.02
_TOCSIN = f"{Path(inspect.getfile(tocsin)).parent}{os.sep}"


class LoopBlocked(AssertionError):  # noqa: N818 - an observation
    """The code of a plugin held the event loop."""


async def run_watched(doing: Awaitable[None], plugin: type) -> None:
    """Run a rule; raise LoopBlocked as soon as the plugin's code has held the event loop."""
    folders = tuple(_list_folders(plugin))
    task, loop, blocks = asyncio.current_task(), asyncio.get_running_loop(), list[str]()

    def find(stack: Stack) -> StackFrame | None:
        """Return the plugin's call; None if it waits for a call of Tocsin, which is not its own."""
        written = (frame for frame in stack if frame.file.startswith((*folders, _TOCSIN)))
        innermost = next(written, None)
        return innermost if innermost and innermost.file.startswith(folders) else None

    def report(stall: Stall) -> None:
        held = stall.attribute(find)
        held.pop(None, None)
        seconds = sum(seconds for seconds, _ in held.values())
        if seconds >= LONGEST_BLOCK and task is not None:
            longest = max(held, key=lambda frame: held[frame][0])
            blocks.append(f"the loop was blocked for {seconds:.1f} s or more, at {longest}")
            loop.call_soon_threadsafe(task.cancel)

    try:
        with _no_collections(), LoopMonitor(report, threshold=LONGEST_BLOCK, interval=_INTERVAL):
            await doing
    except (Exception, asyncio.CancelledError):
        if not blocks:
            raise
    if blocks:
        raise LoopBlocked(blocks[0])


@contextmanager
def _no_collections() -> Iterator[None]:
    """Put off the garbage collector, whose time depends on the size of the whole process."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _list_folders(plugin: type) -> list[str]:
    """Return the folders of a plugin's classes, without those of Tocsin and of Python.

    Trackers belong to the channel that uses them, and may lie in a folder of their own.
    """
    kinds = (kind for each in (plugin, *_list_subclasses(Tracker)) for kind in each.__mro__)
    own = (name for name in {kind.__module__ for kind in kinds} if _is_own(name))
    return [f"{Path(inspect.getfile(sys.modules[name])).parent}{os.sep}" for name in own]


def _list_subclasses(kind: type[object]) -> Iterator[type]:
    each: type
    for each in kind.__subclasses__():
        yield each
        yield from _list_subclasses(each)


def _is_own(module: str) -> bool:
    package = module.partition(".")[0]
    return package != "tocsin" and package not in sys.stdlib_module_names
