"""Lease that a task holds: it is renewed, and the task ends if the lease is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import structlog
from sqlalchemy.exc import SQLAlchemyError

from tocsin.clock import Clock
from tocsin.loops import beat, raise_if_cancelled
from tocsin.store import LEASE_DURATION, Database, Lease, LeaseLost

RENEWAL_INTERVAL = timedelta(seconds=20)
TAKEOVER_INTERVAL = timedelta(seconds=2)
"""How often a waiting node tries to acquire the lease."""
_log = structlog.get_logger()


@asynccontextmanager
async def hold_when_free(
    acquire: Callable[[], Awaitable[Lease | None]], database: Database, clock: Clock
) -> AsyncIterator[Lease]:
    """Wait until `acquire` returns a lease, yield it, and release it at the end.

    When the lease is lost, the task that holds it is cancelled and `LeaseLost` is raised.
    """
    while (lease := await acquire()) is None:
        beat()
        await clock.sleep(TAKEOVER_INTERVAL)
    holder = asyncio.current_task()
    assert holder is not None  # noqa: S101 - a coroutine runs in a task
    renewal = asyncio.create_task(_keep_lease(lease, database, clock))
    lost = False

    def cancel_holder(_: asyncio.Task[None]) -> None:
        nonlocal lost
        if not renewal.cancelled():
            lost = True
            holder.cancel()

    renewal.add_done_callback(cancel_holder)
    try:
        yield lease
    except BaseException:  # the code under way may have turned the cancellation into another error
        if lost and holder.uncancel() == 0:
            raise LeaseLost(
                "the lease was taken over by another node, or not renewed in time"
            ) from None
        raise
    finally:
        renewal.remove_done_callback(cancel_holder)
        renewal.cancel()
        await asyncio.wait({renewal})
        with suppress(asyncio.CancelledError):
            renewal.result()
        with suppress(SQLAlchemyError, OSError):  # the lease expires by itself
            await database.write(lease.release)


async def _keep_lease(lease: Lease, database: Database, clock: Clock) -> None:
    """Renew until the lease is lost to another node, or was not renewed in time."""
    renewed_at = clock.now()
    while clock.now() - renewed_at < LEASE_DURATION - RENEWAL_INTERVAL:
        await clock.sleep(RENEWAL_INTERVAL)
        now = clock.now()
        try:
            if not await database.write(lease.renew, now):
                return
            renewed_at = now
        except (SQLAlchemyError, OSError) as error:
            reason = str(getattr(error, "orig", None) or error)
            _log.warning("lease not renewed", provider=lease.key, reason=reason)
        raise_if_cancelled()
