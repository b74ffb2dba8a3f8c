"""Holding the lease of a provider for as long as it is read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import structlog
from sqlalchemy.exc import SQLAlchemyError

from tocsin.clock import Clock
from tocsin.hookspecs import Provider
from tocsin.incidents.coverage.positions import ReaderSuperseded
from tocsin.incidents.syncing.lease import (
    LEASE_DURATION,
    RENEWAL_INTERVAL,
    ProviderLease,
    acquire_lease,
    release_lease,
    renew_lease,
)
from tocsin.store import Database

TAKEOVER_INTERVAL = timedelta(seconds=2)
"""How soon after its node is gone a provider is read by another."""
_log = structlog.get_logger()


@asynccontextmanager
async def hold_lease(
    provider: Provider, database: Database, clock: Clock, node: int
) -> AsyncIterator[ProviderLease]:
    """Wait for the provider's lease, return it, and give it back at the end.

    Whoever holds it is cancelled when it is lost, and Superseded raised.
    """
    lease = await _wait_for_lease(provider, database, clock, node)
    holder = asyncio.current_task()
    assert holder is not None  # noqa: S101 - a coroutine runs in a task
    keeping = asyncio.create_task(_keep_lease(lease, database, clock))
    lost = False

    def end(_: asyncio.Task[None]) -> None:
        nonlocal lost
        if not keeping.cancelled():
            lost = True
            holder.cancel()

    keeping.add_done_callback(end)
    try:
        yield lease
    except BaseException:  # what was under way may make an error of its own of the cancellation
        if lost and holder.uncancel() == 0:
            raise ReaderSuperseded(f"{lease.provider}: another node reads it now") from None
        raise
    finally:
        keeping.remove_done_callback(end)
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping
        with suppress(SQLAlchemyError, OSError):  # it runs out by itself
            await database.write(release_lease, lease)


async def _wait_for_lease(
    provider: Provider, database: Database, clock: Clock, node: int
) -> ProviderLease:
    settings, name = provider.settings, provider.tools.name
    while True:
        lease = await database.write(acquire_lease, name, settings, node, clock.now())
        if lease is not None:
            return lease
        await clock.sleep(TAKEOVER_INTERVAL)


async def _keep_lease(lease: ProviderLease, database: Database, clock: Clock) -> None:
    """Return when the lease is lost: another has it, or the database was away for too long."""
    renewed_at = clock.now()
    while clock.now() - renewed_at < LEASE_DURATION - RENEWAL_INTERVAL:
        await clock.sleep(RENEWAL_INTERVAL)
        now = clock.now()
        try:
            if not await database.write(renew_lease, lease, now):
                return
            renewed_at = now
        except (SQLAlchemyError, OSError) as error:
            reason = str(getattr(error, "orig", None) or error)
            _log.warning("a lease was not renewed", provider=lease.provider, reason=reason)
