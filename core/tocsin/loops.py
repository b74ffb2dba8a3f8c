"""Loops that outlive what goes wrong in them."""

from __future__ import annotations

import asyncio
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
        except (Exception, asyncio.CancelledError):
            if was_cancelled():
                raise
            _log.exception(f"{what} failed; it is tried again", **facts)
            await clock.sleep(_PAUSE)


def was_cancelled() -> bool:
    """Return whether the current task was cancelled, as opposed to code in it saying so."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
