"""Nodes on PostgreSQL that freeze or vanish without a word, in the middle of what they do."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
from sqlalchemy import URL

from end_to_end.service import until
from tocsin.clock import SystemClock
from tocsin.store import INCIDENT_CHANGE, allot_numbers

from .conftest import account, account_for, wait_for_nodes
from .silent_node import LOCKED, NOT_PERMITTED
from .station import open_station

pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
SCRIPT = Path(__file__).parent / "silent_node.py"


@asynccontextmanager
async def silent_node(url: URL, how: str, **limits: str) -> AsyncIterator[None]:
    """Run a node that holds the locks of intake and routing, and says nothing any more."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        SCRIPT,
        url.render_as_string(hide_password=False),
        how,
        json.dumps(limits),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        said = (await process.stdout.readline()).decode()
        if said == NOT_PERMITTED:
            pytest.skip("making a connection vanish needs CAP_NET_ADMIN")
        assert said == LOCKED
        yield
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize("how", ["freeze", "vanish"])
async def test_others_go_on_soon_after_a_node_went_silent_in_a_transaction(
    how, tmp_path, database, migrated_url, receiver
):
    async with open_station(tmp_path, database, SystemClock()) as station:
        schedule = ["100ms"] * 3
        receiver.destination(retry_schedule=schedule)
        url = f"http://127.0.0.1:{receiver.port}/hook/soc"
        await station.add("soc", url, retry_schedule=schedule)
        limits = {"idle_in_transaction_session_timeout": "200"}
        async with silent_node(migrated_url, how, **limits), asyncio.timeout(10):
            await database.write(allot_numbers, INCIDENT_CHANGE, 1)
            await station.emit(10)
            await account(database, receiver.oracle)
    assert len(receiver.oracle.arrivals) == 10


@pytest.mark.full  # as above, with the limits of a node, which take ten seconds
@pytest.mark.parametrize("how", ["freeze", "vanish"])
async def test_a_node_goes_on_within_half_a_minute_with_the_limits_of_a_node(
    how, make_service, sensor, receiver, migrated_url
):
    service = make_service(receiver.destination(retry_schedule=["100ms"] * 3))
    await service.start()
    sensor.write(10)
    await until(lambda: len(receiver.oracle.accepted("soc")) == 10)
    async with silent_node(migrated_url, how):
        sensor.write(100)
        await until(lambda: len(receiver.oracle.accepted("soc")) == 110, seconds=30)
    await account_for(service, receiver.oracle)


@pytest.mark.timeout(900)  # nothing here depends on how fast the machine is
@pytest.mark.full  # waits for the end of a session, half a minute
async def test_another_node_takes_over_from_one_that_froze_under_load(
    make_service, sensor, receiver, database
):
    """Its presence ends with its session: its leases would hold for a minute longer."""
    soc = receiver.destination(retry_schedule=["100ms"] * 3)
    frozen, other = make_service(soc), make_service(soc)
    await frozen.start()
    await other.start(is_applied=True)
    sensor.write(200)
    await until(lambda: len(receiver.oracle.arrivals) > 20, seconds=120)
    receiver.oracle.breaks.append(datetime.now(UTC))  # what is under way is repeated
    frozen._process.send_signal(signal.SIGSTOP)
    sensor.write(200)
    await until(lambda: len(receiver.oracle.accepted("soc")) == 400, seconds=240)
    receiver.oracle.breaks.append(datetime.now(UTC))
    frozen._process.send_signal(signal.SIGCONT)
    sensor.write(10)
    await until(lambda: len(receiver.oracle.accepted("soc")) == 410, seconds=240)
    async with asyncio.timeout(240), aiohttp.ClientSession() as session:
        for node in (frozen, other):  # both have said since that they work
            while not await node.is_ready(session):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.2)
    await wait_for_nodes(database)
    await account_for(other, receiver.oracle)
    assert [await node.stop() for node in (frozen, other)] == [0, 0]
