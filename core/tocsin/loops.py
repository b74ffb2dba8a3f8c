"""Loops that outlive what goes wrong in them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NoReturn

import structlog

from tocsin.clock import Clock

_PAUSE = timedelta(seconds=5)
_log = structlog.get_logger()


async def run_forever(
    step: Callable[[], Awaitable[None]], clock: Clock, what: str, **facts: str
) -> NoReturn:
    """Take one step after the other until cancelled; one that fails is logged and tried again."""
    while True:
        try:
            await step()
        except Exception:  # noqa: BLE001 - a database that is away comes back
            _log.exception(f"{what} failed; it is tried again", **facts)
            await clock.sleep(_PAUSE)
