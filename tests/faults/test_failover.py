"""A node whose PostgreSQL fails over to a replica, with both servers in its URL."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url

from conftest import migrate
from end_to_end.service import Service, until
from replication import Replica, ReplicatedPostgres, name_both, replicating
from tocsin.store import parse_url

from .conftest import account_for
from .oracle import Oracle
from .pushes import Sender
from .receiver import Receiver

pytestmark = pytest.mark.full  # two servers, and a node in a process of its own


@asynccontextmanager
async def serving(
    folder: Path, receiver: Receiver, servers: tuple[ReplicatedPostgres, Replica]
) -> AsyncIterator[tuple[Service, Sender, asyncio.Task[None]]]:
    """Run a node under load on the primary; it knows the replica too."""
    primary, replica = servers
    await asyncio.to_thread(migrate, make_url(await asyncio.to_thread(primary.create, "tocsin")))
    service = Service(folder, parse_url(name_both(primary, replica, "tocsin")))
    sender = Sender(service, receiver.destination(retry_schedule=["100ms"] * 3))
    await service.start()
    load = asyncio.create_task(sender.run())
    try:
        await until(lambda: len(receiver.oracle.accepted("soc")) >= 50)
        yield service, sender, load
    finally:
        load.cancel()
        await service.kill()


async def accept_more(sender: Sender) -> None:
    enough = sender.accepted + 50
    await until(lambda: sender.accepted >= enough)


async def expect_all_delivered(
    service: Service, sender: Sender, load: asyncio.Task[None], oracle: Oracle
) -> None:
    """End the load, and expect all that was accepted to be delivered and accounted for."""
    load.cancel()
    await asyncio.wait([load])
    await until(lambda: len(oracle.accepted("soc")) >= sender.accepted)
    await account_for(service, oracle)
    assert await service.stop() == 0
    # the last one may have been stored without its sender having read the answer
    assert len(oracle.accepted("soc")) - sender.accepted in (0, 1)


@pytest.fixture
def servers():
    # not below pytest's own folder, which it keeps for one user alone
    with tempfile.TemporaryDirectory(prefix="tocsin-replication-") as folder:
        Path(folder).chmod(0o755)
        with replicating(Path(folder)) as both:
            yield both


async def test_a_failover_to_a_synchronous_replica_loses_nothing(tmp_path, receiver, servers):
    primary, replica = servers
    async with serving(tmp_path, receiver, servers) as (service, sender, load):
        await asyncio.to_thread(primary.require_replica)
        await accept_more(sender)
        await asyncio.to_thread(primary.crash)
        await until(lambda: sender.repeated > 0)
        await asyncio.to_thread(replica.promote)
        await accept_more(sender)
        await expect_all_delivered(service, sender, load, receiver.oracle)


async def test_postgresql_that_crashes_and_recovers_loses_nothing(tmp_path, receiver, servers):
    primary, _ = servers
    async with serving(tmp_path, receiver, servers) as (service, sender, load):
        await asyncio.to_thread(primary.crash)
        await until(lambda: sender.repeated > 0)
        await asyncio.to_thread(primary.start)
        await accept_more(sender)
        await expect_all_delivered(service, sender, load, receiver.oracle)


async def test_what_a_failover_to_an_asynchronous_replica_loses_is_named(
    tmp_path, receiver, servers
):
    primary, replica = servers
    async with serving(tmp_path, receiver, servers) as (service, sender, _):
        await asyncio.to_thread(replica.stop_following)
        await accept_more(sender)
        await asyncio.sleep(1.5)  # until the head is stored
        await asyncio.to_thread(primary.crash)
        await asyncio.to_thread(replica.promote)
        assert await asyncio.wait_for(service.wait(), 60) == 3
        assert "rolled back" in service.log.read_text()
        await service.start(is_applied=True)
        await accept_more(sender)
        status, out, _ = await service.command("prove", "--json")
        kinds = {item["kind"]: item["detail"] for item in json.loads(out)["unaccounted"]}
        assert (status, kinds.keys()) == (1, {"rolled-back"})
        lost = re.match(r"incidents (\d+) to (\d+) were stored but are", kinds["rolled-back"])
        assert lost is not None
        assert int(lost[2]) - int(lost[1]) >= 49
