"""Lease of one provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection, select, update
from sqlalchemy.exc import SQLAlchemyError

from tocsin.clock import Clock
from tocsin.events import new_id
from tocsin.hookspecs import Provider
from tocsin.incidents.coverage.positions import ReaderSuperseded
from tocsin.store import Database, find_absent_nodes
from tocsin.store.statements import build_insert
from tocsin.store.tables import providers

LEASE_DURATION = timedelta(seconds=90)
RENEWAL_INTERVAL = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class ProviderLease:
    """The right to read a provider, for as long as its token is the one in the database."""

    provider: str
    token: str


def acquire_lease(
    connection: Connection, provider: str, settings: Provider.Settings, node: int, now: datetime
) -> ProviderLease | None:
    """Return the lease of a provider, None while another node that is there holds it."""
    _make_row(connection, provider, settings.plugin)
    row = connection.execute(
        select(providers.c.node, providers.c.lease, providers.c.leased_until).where(
            providers.c.name == provider
        )
    ).one()
    if (
        row.lease is not None
        and row.leased_until > now
        and not find_absent_nodes(connection, [row.node])
    ):
        return None
    token = new_id("lease")
    result = connection.execute(
        update(providers)
        .where(providers.c.name == provider, providers.c.lease.is_not_distinct_from(row.lease))
        .values(
            plugin=settings.plugin,
            poll_ms=settings.poll_interval // timedelta(milliseconds=1),
            node=node,
            lease=token,
            leased_until=now + LEASE_DURATION,
        )
    )
    return ProviderLease(provider, token) if result.rowcount == 1 else None


def _make_row(connection: Connection, provider: str, plugin: str) -> None:
    row = {"name": provider, "plugin": plugin, "poll_ms": 0, "failures": 0}
    connection.execute(build_insert(connection, providers).values(row).on_conflict_do_nothing())


def renew_lease(connection: Connection, lease: ProviderLease, now: datetime) -> bool:
    """Make the lease longer, and return whether it was still there to be."""
    result = connection.execute(
        update(providers)
        .where(providers.c.name == lease.provider, providers.c.lease == lease.token)
        .values(leased_until=now + LEASE_DURATION)
    )
    return result.rowcount == 1


def release_lease(connection: Connection, lease: ProviderLease) -> None:
    """Give the lease back, for another node to take at once; nothing where it was lost."""
    connection.execute(
        update(providers)
        .where(providers.c.name == lease.provider, providers.c.lease == lease.token)
        .values(node=None, lease=None, leased_until=None)
    )


def confirm_lease(connection: Connection, lease: ProviderLease) -> None:
    """Return where the lease holds until this transaction ends; raises Superseded elsewhere."""
    held = select(providers.c.name).where(
        providers.c.name == lease.provider, providers.c.lease == lease.token
    )
    if connection.execute(held.with_for_update(read=True)).first() is None:
        raise ReaderSuperseded(f"{lease.provider}: another node reads it now")


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
