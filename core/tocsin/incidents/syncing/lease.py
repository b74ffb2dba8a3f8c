"""One node at a time reads a provider: the lease that says which."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, select, update

from tocsin.events import new_id
from tocsin.hookspecs import Provider
from tocsin.incidents.coverage.positions import ReaderSuperseded
from tocsin.store import find_absent_nodes
from tocsin.store.conflicts import build_insert
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
