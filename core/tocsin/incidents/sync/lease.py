"""Lease of one provider: one node at a time reads it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from types import MappingProxyType

import structlog
from sqlalchemy import Connection, select
from sqlalchemy.exc import SQLAlchemyError

from tocsin.clock import Clock
from tocsin.hookspecs import Provider
from tocsin.loops import beat
from tocsin.store import (
    LEASE_DURATION,
    Database,
    Lease,
    LeasedTable,
    LeaseLost,
    build_insert,
    find_absent_nodes,
)
from tocsin.store.tables import providers

RENEWAL_INTERVAL = timedelta(seconds=20)
TAKEOVER_INTERVAL = timedelta(seconds=2)
"""The interval at which a waiting node tries to acquire the lease."""
_MILLISECOND = timedelta(milliseconds=1)
_leased = LeasedTable(providers, providers.c.name)
_log = structlog.get_logger()


def acquire_lease(
    connection: Connection,
    provider: str,
    settings: Provider.Settings,
    node: int,
    now: datetime,
    *,
    intervals: Mapping[str, timedelta] = MappingProxyType({}),
) -> Lease | None:
    """Return the lease of a provider, None while another node that is present holds it.

    Stores the `intervals` of the streams that are read less often than the provider is polled.
    """
    columns = providers.c
    first_row = {"name": provider, "plugin": settings.plugin, "poll_ms": 0, "failures": 0}
    new = build_insert(connection, providers).values(first_row)
    connection.execute(new.on_conflict_do_nothing())
    query = select(columns.node, columns.lease, columns.leased_until)
    row = connection.execute(query.where(columns.name == provider)).one()
    if not _leased.is_free(row, now) and not find_absent_nodes(connection, [row.node]):
        return None
    values = {
        "plugin": settings.plugin,
        "poll_ms": settings.poll_interval // _MILLISECOND,
        "stream_intervals_ms": {name: each // _MILLISECOND for name, each in intervals.items()},
    }
    token = _leased.acquire(connection, row, provider, node, now, **values)
    return None if token is None else Lease(_leased, provider, token)


@asynccontextmanager
async def hold_lease(
    provider: Provider, database: Database, clock: Clock, node: int
) -> AsyncIterator[Lease]:
    """Wait for the provider's lease, yield it, and release it at the end.

    When the lease is lost, the task that holds it is cancelled and `LeaseLost` is raised.
    """
    lease = await _wait_for_lease(provider, database, clock, node)
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
        with suppress(asyncio.CancelledError):
            await renewal
        with suppress(SQLAlchemyError, OSError):  # the lease expires by itself
            await database.write(lease.release)


async def _wait_for_lease(provider: Provider, database: Database, clock: Clock, node: int) -> Lease:
    settings, name = provider.settings, provider.tools.name
    slower = find_slower_streams(provider)
    while True:
        now = clock.now()
        lease = await database.write(acquire_lease, name, settings, node, now, intervals=slower)
        if lease is not None:
            return lease
        beat()
        await clock.sleep(TAKEOVER_INTERVAL)


def find_slower_streams(provider: Provider) -> dict[str, timedelta]:
    """Return the intervals of the streams that are read less often than the provider is polled."""
    poll = provider.settings.poll_interval
    intervals = {stream: provider.read_interval(stream) for stream in provider.streams()}
    return {stream: interval for stream, interval in intervals.items() if interval > poll}


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
