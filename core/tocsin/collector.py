"""Python's collector of cyclic garbage, told how a service differs from a script."""

from __future__ import annotations

import gc

_YOUNG = 50_000
_MIDDLE = 20
_OLD = 100


def spare() -> None:
    """Leave alone what is there now, and look for garbage among what comes less often.

    Modules and schemas stay for ever, and what a page or a delivery makes is gone without the
    collector; by default it took a quarter of the time of storing a page.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
