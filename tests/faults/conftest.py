"""Fixtures of the tests of faults: a receiver that counts, and services that may be killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import URL, Connection, exists, or_, select

from end_to_end.service import Sensor, Service
from tocsin.accounting import Period, report_period
from tocsin.clock import Clock, SystemClock
from tocsin.store import Database, find_troubled_nodes, open_database
from tocsin.store.tables import deliveries, events

from .oracle import Oracle
from .receiver import Receiver


class HastyClock(SystemClock):
    """Does not let a loop wait as long as it means to, such as five seconds after a failure."""

    async def sleep(self, duration: timedelta) -> None:
        await asyncio.sleep(duration.total_seconds() / 100)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with Receiver() as receiver:
        yield receiver


@pytest.fixture
def sensor(tmp_path: Path) -> Sensor:
    return Sensor(tmp_path / "eve.json")


@pytest.fixture
async def make_service(tmp_path: Path, migrated_url: URL) -> AsyncIterator[Callable[..., Service]]:
    """Makes services with the given destinations on one database; the test starts them."""
    made: list[Service] = []

    def make(*destinations: str) -> Service:
        service = Service(tmp_path, migrated_url, *destinations)
        service.log = tmp_path / f"serve-{len(made)}.log"
        made.append(service)
        return service

    yield make
    for service in made:
        await service.kill()


async def wait_for_nodes(database: Database) -> None:
    """Return when no node is silent or stuck any more."""
    async with asyncio.timeout(60):
        while await database.read(  # noqa: ASYNC110 - asks a database
            lambda c: [*find_troubled_nodes(c, datetime.now(UTC))]
        ):
            await asyncio.sleep(0.2)


async def account_for(service: Service, oracle: Oracle) -> None:
    """As `account`, of a service in a process of its own."""
    database = open_database(service.database)
    try:
        await wait_for_nodes(database)  # a killed one counts as stuck until it is replaced
        await account(database, oracle)
    finally:
        await database.close()


async def account(
    database: Database, oracle: Oracle, clock: Clock | None = None, anomalies: Sequence[str] = ()
) -> None:
    """Fail unless everything comes to rest, and the oracle and the product's own proof agree.

    The proof lists one anomaly of each of these kinds, and no other.
    """
    async with asyncio.timeout(60):
        while await database.read(_is_under_way):  # noqa: ASYNC110 - asks a database
            await asyncio.sleep(0.02)
    await oracle.account(database)
    now = (clock or SystemClock()).now()
    proof = await database.read(report_period, Period(now - timedelta(days=1), now), now)
    found = proof["unaccounted"]
    assert [anomaly["kind"] for anomaly in found] == [*anomalies], found


def _is_under_way(connection: Connection) -> bool:
    waiting = exists().where(deliveries.c.state == "pending")
    unrouted = exists().where(events.c.routed.is_(False))
    return bool(connection.scalar(select(or_(waiting, unrouted))))
