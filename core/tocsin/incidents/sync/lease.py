"""Lease of one provider: one node at a time reads it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from types import MappingProxyType

from sqlalchemy import Connection, select

from tocsin.clock import Clock
from tocsin.hookspecs import Provider
from tocsin.incidents.held_lease import hold_when_free
from tocsin.store import Database, Lease, LeasedTable, build_insert
from tocsin.store.tables import providers

_MILLISECOND = timedelta(milliseconds=1)
_leased = LeasedTable(providers, providers.c.name)


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
    query = select(columns.node, columns.lease, columns.leased_until).where(
        columns.name == provider
    )
    if (row := connection.execute(query).one_or_none()) is None:
        new = build_insert(connection, providers).values(first_row)
        connection.execute(new.on_conflict_do_nothing())
        row = connection.execute(query).one()
    if not _leased.is_left(connection, row, node, now):
        return None
    values = {
        "plugin": settings.plugin,
        "poll_ms": settings.poll_interval // _MILLISECOND,
        "stream_intervals_ms": {name: each // _MILLISECOND for name, each in intervals.items()},
    }
    token = _leased.acquire(connection, row, provider, node, now, **values)
    return None if token is None else Lease(_leased, provider, token)


def hold_lease(
    provider: Provider, database: Database, clock: Clock, node: int
) -> AbstractAsyncContextManager[Lease]:
    """Wait for the provider's lease, hold it, and release it at the end; see `hold_when_free`."""
    settings, name = provider.settings, provider.tools.name
    slower = find_slower_streams(provider)

    async def acquire() -> Lease | None:
        now = clock.now()
        return await database.write(acquire_lease, name, settings, node, now, intervals=slower)

    return hold_when_free(acquire, database, clock)


def find_slower_streams(provider: Provider) -> dict[str, timedelta]:
    """Return the intervals of the streams that are read less often than the provider is polled."""
    poll = provider.settings.poll_interval
    intervals = {stream: provider.read_interval(stream) for stream in provider.streams()}
    return {stream: interval for stream, interval in intervals.items() if interval > poll}
