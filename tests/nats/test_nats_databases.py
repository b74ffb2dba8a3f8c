"""A pooler that restarts and a primary that is lost, while an intake accepts pushes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sqlalchemy import make_url

from conftest import migrate
from faults.conftest import account_for
from faults.receiver import Receiver
from intake_service import SENDERS, IntakeService, Senders, expect_all_stored, prove, read, settle
from nats_servers import needs_servers
from pgbouncer import WHY_NOT, pooling
from replication import name_both, replicating
from tocsin.store import parse_url

pytest.importorskip("nats", reason="needs the package nats-py of the development requirements")

# What runs instead: the same faults without an intake, and readers whose position is older
pytestmark = [needs_servers, pytest.mark.full, pytest.mark.timeout(300)]


@pytest.fixture
async def receiver():
    async with Receiver() as receiver:
        yield receiver


async def account_for_each(service: IntakeService, receiver: Receiver) -> None:
    """Expect each stored incident to be delivered once."""
    await account_for(service, receiver.oracle)
    stored, _, _ = await read(service)
    assert len(receiver.oracle.accepted("soc")) == len(stored)
    assert receiver.oracle.repeats() == 0


@pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_pgbouncer_restarted_under_load_interrupts_no_push(
    folder, postgres, migrated_url, servers, receiver
):
    block = receiver.destination(retry_schedule=["100ms"] * 3)
    with pooling(folder.parent, postgres, migrated_url, "session") as pooler:
        service = IntakeService(folder, pooler.url, servers, block)
        try:
            await service.start()
            await service.wait_for_intake()
            senders = Senders(service)
            async with senders.pushing():
                await senders.accept(40)
                pooler.kill()
                await senders.accept(20)
                await asyncio.sleep(3)
                pooler.start()
                await senders.accept(40)
            assert senders.answers.keys() <= {200, 202, 503}, senders.refusals
            service.database = migrated_url.set(drivername=pooler.url.drivername)
            await expect_all_stored(service, senders, repeats=SENDERS)
            await account_for_each(service, receiver)
            assert await service.stop() == 0
        finally:
            await service.kill()


@pytest.fixture
def pair():
    # not below pytest's own folder, which it keeps for one user alone
    with TemporaryDirectory(prefix="tocsin-replication-") as folder:
        Path(folder).chmod(0o755)
        with replicating(Path(folder)) as both:
            yield both


async def test_what_an_asynchronous_replica_lacks_is_stored_again(folder, servers, receiver, pair):
    primary, replica = pair
    await asyncio.to_thread(migrate, make_url(await asyncio.to_thread(primary.create, "tocsin")))
    block = receiver.destination(retry_schedule=["100ms"] * 3)
    database = parse_url(name_both(primary, replica, "tocsin"))
    service = IntakeService(folder, database, servers, block)
    try:
        await service.start()
        await service.wait_for_intake()
        senders = Senders(service)
        async with senders.pushing():
            await senders.accept(40)
            await asyncio.to_thread(replica.stop_following)
            await senders.accept(40)
            await asyncio.sleep(1.5)  # until the head is stored
            await asyncio.to_thread(primary.crash)
            await asyncio.to_thread(replica.promote)
            assert await asyncio.wait_for(service.wait(), 60) == 3
            await service.start(is_applied=True)
            await service.wait_for_intake()
            await senders.accept(40)
        service.database = make_url(replica.dsn("tocsin"))
        # The intake has only what was accepted with 202
        senders.accepted -= senders.stored_at_once
        missing, _ = await settle(service, senders)
        assert not missing
        assert await prove(service) == ["rolled-back"]
        assert await service.stop() == 0
    finally:
        await service.kill()
