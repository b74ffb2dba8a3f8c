"""Garbage collector and allocator settings for a long-running service."""

from __future__ import annotations

import ctypes
import gc
from contextlib import ExitStack, suppress
from typing import Any

from tocsin.sandbox import pause

_YOUNG = 50_000
_MIDDLE = 20
_OLD = 100
_pauses = ExitStack()
_M_MMAP_THRESHOLD = -3  # of mallopt(3)
_LARGE = 2**20  # bytes


def tune() -> None:
    """Freeze existing objects, and collect garbage less often.

    Modules and schemas live forever, and pages and deliveries leave few cycles; with the defaults,
    a quarter of the time for storing a page went to the collector. Collection time does not count
    toward the time limit of a template that happens to render then.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
    if _pause_time_limits not in gc.callbacks:
        gc.callbacks.append(_pause_time_limits)


def return_large_blocks() -> None:
    """Have glibc return large blocks to the system when they are free, such as pushed bodies.

    It would otherwise keep up to 32 MiB for each, in the heap of each thread.
    """
    with suppress(OSError, AttributeError):  # other C libraries
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)


def _pause_time_limits(phase: str, _info: dict[str, Any]) -> None:
    if phase == "start":
        _pauses.enter_context(pause())
    else:
        _pauses.close()
