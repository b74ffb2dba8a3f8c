"""Python's collector of cyclic garbage, told how a service differs from a script."""

from __future__ import annotations

import gc
from contextlib import ExitStack
from typing import Any

from tocsin.sandbox import pause

_YOUNG = 50_000
_MIDDLE = 20
_OLD = 100
_collecting = ExitStack()


def spare() -> None:
    """Leave alone what is there now, and look for garbage among what comes less often.

    Modules and schemas stay for ever, and what a page or a delivery makes is gone without the
    collector; by default it took a quarter of the time of storing a page. The time that it takes is
    held against no template in which it happens to fall.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
    if _stop_the_clock not in gc.callbacks:
        gc.callbacks.append(_stop_the_clock)


def _stop_the_clock(phase: str, _info: dict[str, Any]) -> None:
    if phase == "start":
        _collecting.enter_context(pause())
    else:
        _collecting.close()
