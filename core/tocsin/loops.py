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
"""Exceptions of a plugin that affect only the plugin; check `was_cancelled` before you swallow one.
"""
_PAUSE = timedelta(seconds=5)
_log = structlog.get_logger()


async def run_forever(
    step: Callable[[], Awaitable[None]], clock: Clock, what: str, **facts: str
) -> NoReturn:
    """Run steps until cancelled; a failed step is logged and retried after a pause."""
    while True:
        try:
            await step()
        except (Exception, asyncio.CancelledError) as error:
            if was_cancelled():
                raise
            _log_failure(f"{what} failed; retrying", error, facts)
            await clock.sleep(_PAUSE)


def _log_failure(message: str, error: BaseException, facts: dict[str, str]) -> None:
    if isinstance(error, OSError | DBAPIError | PoolTimeout):  # an outage, not a bug
        reason = getattr(error, "orig", None) or error
        _log.warning(message, **facts, reason=str(reason))
    else:
        _log.error(message, **facts, exc_info=error)


def was_cancelled() -> bool:
    """Return whether the current task was cancelled, and not just code within it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
