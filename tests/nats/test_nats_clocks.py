"""Nodes with an intake whose clocks are not those of the database and of the other nodes."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest
from sqlalchemy import func, select
from standardwebhooks import Webhook

from end_to_end.service import SECRET, until
from faults.conftest import account, wait_for_nodes
from faults.receiver import Receiver
from faults.test_node_clocks import SkewedClock, running
from nats_servers import install_plugin, needs_servers, run_server
from tocsin.node import ServiceNode, apply_file
from tocsin.registry import load_configuration
from tocsin.store.tables import incidents, intake_positions, nodes

pytest.importorskip("nats", reason="needs the package nats-py of the development requirements")

# What runs instead: a node with a wrong clock without an intake, and readers that lose their lease
pytestmark = [
    needs_servers,
    pytest.mark.full,
    pytest.mark.parametrize("database_url", ["postgresql"], indirect=True),
]
PUSHES = 20
LEASE = 90
"""Seconds after which another node reads what a node does that has left its lease."""
_PLUGINS = """
enabled = ["nats", "push", "webhook"]
[intake]
plugin = "nats"
servers = ["{server}"]
replicas = 1
max_mib = 10
[providers.scripts]
plugin = "push"
format = "incident"
secret = {{ file = "secret" }}
"""


async def push(node: ServiceNode, name: str) -> int:
    """Push an incident with a signature of this moment, and return the status."""
    body = json.dumps({"external_id": name, "title": "Odd sign-in", "severity": "High"})
    now = datetime.now(UTC)
    headers = {
        "webhook-id": name,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(SECRET).sign(name, now, body),
        "Content-Type": "application/json",
    }
    url = f"http://127.0.0.1:{node.settings.port}/api/push/scripts"
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=body, headers=headers) as response,
    ):
        assert response.status != 503 or int(response.headers["Retry-After"]) > 0
        return response.status


async def push_all(node: ServiceNode, prefix: str) -> set[int]:
    return {await push(node, f"{prefix}-{number}") for number in range(PUSHES)}


async def wait_until_accepting(*running_nodes: ServiceNode) -> None:
    """Return when the intake of each node accepts pushes."""
    for node in running_nodes:
        url = f"http://127.0.0.1:{node.settings.port}/readyz"
        async with asyncio.timeout(30), aiohttp.ClientSession() as session:
            while not await accepts(session, url):  # noqa: ASYNC110 - asks a node
                await asyncio.sleep(0.05)


async def accepts(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as response:
            return response.status == 200 and (await response.json())["intake"]
    except aiohttp.ClientConnectionError:
        return False


async def find_reader(database) -> str:
    """Return the name of the node that stores the pushes, once there is one."""
    held = select(nodes.c.name).join(intake_positions, intake_positions.c.node == nodes.c.number)
    async with asyncio.timeout(30):
        while (found := await database.read(lambda c: c.scalar(held))) is None:  # noqa: ASYNC110 - asks a database
            await asyncio.sleep(0.05)
    return str(found)


async def wait_until_stored(database, count: int) -> None:
    query = select(func.count()).select_from(incidents)
    async with asyncio.timeout(LEASE + 30):
        while await database.read(lambda c: c.scalar(query)) < count:  # noqa: ASYNC110 - asks a database
            await asyncio.sleep(0.05)


async def wait_until_clocks_agree(database) -> None:
    """Return when no node has a clock offset of a second on record."""
    largest = select(func.max(func.abs(nodes.c.clock_offset_ms)))
    async with asyncio.timeout(30):
        while await database.read(lambda c: c.scalar(largest)) >= 1000:  # noqa: ASYNC110 - asks a database
            await asyncio.sleep(0.05)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seconds", [300, -300])
async def test_a_node_whose_clock_is_five_minutes_off_accepts_and_stores_nothing(
    tmp_path, database, migrated_url, monkeypatch, seconds
):
    monkeypatch.syspath_prepend(install_plugin(tmp_path).partition(":")[0])
    async with run_server(tmp_path / "nats") as server, Receiver() as receiver:
        (tmp_path / "secret").write_text(SECRET)
        path = tmp_path / "plugins.toml"
        block = receiver.destination(retry_schedule=["100ms"] * 3)
        path.write_text(_PLUGINS.format(server=server.url) + block)
        configuration = await load_configuration(path)
        await database.write(apply_file, configuration, "file", SkewedClock().now())
        clocks = [SkewedClock(), SkewedClock()]
        async with AsyncExitStack() as stack:
            both = [
                await stack.enter_async_context(running(tmp_path, migrated_url, clock))
                for clock in clocks
            ]
            await wait_until_accepting(*both)
            assert await push_all(both[0], "before") == {202}
            reader = await find_reader(database)
            wrong = next(at for at, node in enumerate(both) if node.state.name == reader)
            await wait_until_stored(database, PUSHES)
            await account(database, receiver.oracle)  # a wrong clock delays and spoils deliveries
            begun = datetime.now(UTC)
            clocks[wrong].seconds = seconds
            await until(lambda: both[wrong].state.suspension is not None)
            # not 401, as for a signature that is too old: the sender repeats what gets 503
            assert await push_all(both[wrong], "during") == {503}
            assert await push_all(both[1 - wrong], "during") == {202}
            await wait_until_stored(database, 2 * PUSHES)
            assert await find_reader(database) == both[1 - wrong].state.name
            clocks[wrong].seconds = 0
            await wait_until_accepting(both[wrong])
            assert await push_all(both[wrong], "after") == {202}
            await wait_until_stored(database, 3 * PUSHES)
            await wait_until_clocks_agree(database)
            await wait_for_nodes(database)
            await account(database, receiver.oracle, anomalies=["refused-push"])
        times = select(incidents.c.external_id, incidents.c.occurred_at, incidents.c.created_at)
        stored = await database.read(lambda c: c.execute(times).all())
    assert len(receiver.oracle.accepted("soc")) == 3 * PUSHES
    assert receiver.oracle.repeats() == 0
    now = datetime.now(UTC)
    pushed_later = [row for row in stored if not row.external_id.startswith("before")]
    assert len(pushed_later) == 2 * PUSHES
    second = timedelta(seconds=1)
    for row in pushed_later:
        assert begun - second <= row.occurred_at <= row.created_at + second <= now + 2 * second
