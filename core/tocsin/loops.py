"""Background loops that survive failures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NoReturn

import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from tocsin.clock import Clock

PLUGIN_FAILURES = (Exception, asyncio.CancelledError, SystemExit)
"""What a plugin may raise that costs only itself; see `was_cancelled` before it is swallowed."""
_PAUSE = timedelta(seconds=5)
_log = structlog.get_logger()


async def run_forever(
    step: Callable[[], Awaitable[None]], clock: Clock, what: str, **facts: str
) -> NoReturn:
    """Take one step after the other until cancelled; one that fails is logged and tried again."""
    while True:
        try:
            await step()
        except (Exception, asyncio.CancelledError) as error:
            if was_cancelled():
                raise
            _log_failure(f"{what} failed; it is tried again", error, facts)
            await clock.sleep(_PAUSE)


def _log_failure(words: str, error: BaseException, facts: dict[str, str]) -> None:
    if isinstance(
        error, OSError | DBAPIError | PoolTimeout
    ):  # nobody's bug: something is away, and comes back
        reason = getattr(error, "orig", None) or error
        _log.warning(words, **facts, reason=str(reason))
    else:
        _log.error(words, **facts, exc_info=error)


def was_cancelled() -> bool:
    """Return whether the current task was cancelled, as opposed to code in it saying so."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
