"""Garbage collector settings for a long-running service."""

from __future__ import annotations

import gc
from contextlib import ExitStack
from typing import Any

from tocsin.sandbox import pause

_YOUNG = 50_000
_MIDDLE = 20
_OLD = 100
_pauses = ExitStack()


def tune() -> None:
    """Leave alone what is there now, and look for garbage among what comes less often.

    Modules and schemas stay for ever, and what a page or a delivery makes is gone without the
    collector; by default it took a quarter of the time of storing a page. The time that it takes is
    held against no template in which it happens to fall.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
    if _pause_time_limits not in gc.callbacks:
        gc.callbacks.append(_pause_time_limits)


def _pause_time_limits(phase: str, _info: dict[str, Any]) -> None:
    if phase == "start":
        _pauses.enter_context(pause())
    else:
        _pauses.close()
