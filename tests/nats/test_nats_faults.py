"""Faults of the database, the node and NATS while senders push: what is accepted is stored."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
import asyncpg
import pytest
from sqlalchemy import make_url

from end_to_end.service import Service
from intake_service import SENDERS, IntakeService, Senders, expect_all_stored, prove, read, settle
from nats_servers import NatsServer, needs_servers, run_cluster
from postgres import Postgres

pytest.importorskip("nats", reason="needs the package nats-py of the development requirements")

# What runs instead: the conformance suite, and one server that is away or full
pytestmark = [needs_servers, pytest.mark.full, pytest.mark.timeout(300)]


@pytest.fixture
async def service(folder, servers):
    url = make_url(f"sqlite+aiosqlite:///{folder}/tocsin.db")
    service = IntakeService(folder, url, servers)
    await service.start()
    await service.wait_for_intake()
    yield service
    await service.stop()


async def test_a_killed_node_loses_nothing_and_stores_nothing_twice(service, servers):
    senders = Senders(service)
    async with senders.pushing():
        for _ in range(3):
            await senders.accept(40)
            await service.kill()
            await service.start()
            await service.wait_for_intake()
        await senders.accept(20)
    await expect_all_stored(service, senders, repeats=3 * SENDERS)


async def test_a_killed_leader_interrupts_nothing(service, servers):
    senders = Senders(service)
    async with senders.pushing():
        await senders.accept(40)
        for server in servers:  # each in turn, so one of them leads
            await server.kill()
            await senders.accept(40)
            await server.start()
            await senders.accept(40)
    assert senders.answers.keys() <= {200, 202}, senders.refusals
    await expect_all_stored(service, senders, repeats=3 * SENDERS)


async def test_pushes_are_stored_at_once_while_all_servers_are_away(service, servers):
    senders = Senders(service)
    async with senders.pushing():
        await senders.accept(40)
        await asyncio.gather(*(server.kill() for server in servers))
        await senders.accept(20, 200)
        await asyncio.gather(*(server.start() for server in servers))
        await service.wait_for_intake()
        await senders.accept(20)
    assert senders.answers.keys() <= {200, 202}, senders.refusals
    await expect_all_stored(service, senders, repeats=2 * SENDERS)


async def test_a_lost_disk_of_one_server_loses_nothing(service, servers):
    senders = Senders(service)
    async with senders.pushing():
        await senders.accept(40)
        await servers[0].kill()
        servers[0].lose_data()
        await senders.accept(20)
        await servers[0].start()
        await senders.accept(40)
    missing, _ = await settle(service, senders)
    assert not missing
    assert await prove(service) == []


async def test_the_lost_disks_of_all_servers_are_in_the_proof(service, servers):
    senders = Senders(service)
    async with senders.pushing():
        await senders.accept(40)
    assert await settle(service, senders) == (set(), 0)
    await asyncio.gather(*(server.kill() for server in servers))
    for server in servers:
        server.lose_data()
    await asyncio.gather(*(server.start() for server in servers))
    await service.wait_for_intake()
    async with senders.pushing():
        await senders.accept(20)
    missing, _ = await settle(service, senders)
    assert not missing  # numbers begin again, and are not taken for those that are stored
    assert await prove(service) == ["lost-push"]


async def test_a_server_that_hangs_delays_pushes_and_loses_none(service, servers):
    senders = Senders(service)
    async with senders.pushing():
        await senders.accept(40)
        for server in servers:
            server.send(signal.SIGSTOP)
            await asyncio.sleep(8)
            server.send(signal.SIGCONT)
            await service.wait_for_intake()
        await senders.accept(40)
    assert senders.answers.keys() <= {200, 202}, senders.refusals
    await expect_all_stored(service, senders, repeats=6 * SENDERS)


async def test_a_restored_backup_gets_what_was_pushed_since(service, servers):
    senders = Senders(service)
    async with senders.pushing():
        await senders.accept(40)
        await settle(service, senders)
    await service.stop()
    file = Path(service.database.database)
    shutil.copy(file, file.with_suffix(".backup"))
    await service.start()
    await service.wait_for_intake()
    async with senders.pushing():
        await senders.accept(40)
    await settle(service, senders)
    await service.stop()
    for path in file.parent.glob("tocsin.db*"):
        path.unlink()
    shutil.copy(file.with_suffix(".backup"), file)
    await service.start()
    senders.accepted -= senders.stored_at_once
    missing, _ = await settle(service, senders)
    assert not missing
    assert await prove(service) == ["rolled-back"]


@pytest.fixture
def own_postgres():
    # not below pytest's own folder, which it keeps for one user alone
    with TemporaryDirectory(prefix="tocsin-postgres-") as place, Postgres(Path(place)) as postgres:
        yield postgres


async def test_pushes_are_accepted_while_postgresql_is_away(folder, servers, own_postgres):
    url = make_url(await asyncio.to_thread(own_postgres.create, "intake"))
    service = IntakeService(folder, url, servers)
    status, _, errors = await service.command("db", "upgrade")
    assert status == 0, errors
    await service.start()
    await service.wait_for_intake()
    senders = Senders(service)
    async with senders.pushing():
        await senders.accept(40)
        await asyncio.to_thread(own_postgres.stop)
        await senders.accept(20)
        await asyncio.sleep(35)  # until loops count as stalled
        ready = await service.read_ready()
        await senders.accept(40)
        await asyncio.to_thread(own_postgres.start)
        await senders.accept(40)
    missing, repeats = await settle(service, senders)
    kinds = await prove(service)
    await service.stop()
    assert (ready["code"], ready["database"], ready["intake"]) == (200, False, True)
    assert not missing
    assert 0 <= repeats <= SENDERS
    assert kinds == []
    assert senders.answers.keys() <= {200, 202, 503}, senders.refusals


async def find_connected(servers: list[NatsServer]) -> NatsServer:
    """Return the server to which the node is connected."""
    async with aiohttp.ClientSession() as session:
        for server in servers:
            async with session.get(f"{server.monitoring}/connz") as response:
                if any(each["name"] == "tocsin" for each in (await response.json())["connections"]):
                    return server
    raise AssertionError("the node is not connected")


async def test_a_server_that_is_frozen_for_a_minute_delays_no_push_for_long(service, servers):
    senders = Senders(service)
    senders.pause = 0.1  # below the rate limit of a provider
    async with senders.pushing():
        await senders.accept(40)
        frozen = await find_connected(servers)
        frozen.send(signal.SIGSTOP)
        await asyncio.sleep(60)
        frozen.send(signal.SIGCONT)
        await service.wait_for_intake()
        await senders.accept(40)
    assert senders.answers.keys() <= {200, 202}, senders.refusals
    # what it had not acknowledged, it stores when it continues
    await expect_all_stored(service, senders, repeats=2 * SENDERS)


async def test_servers_that_are_away_for_three_minutes_are_used_again(service, servers):
    senders = Senders(service)
    senders.pause = 0.2
    async with senders.pushing():
        await senders.accept(40)
        await asyncio.gather(*(server.kill() for server in servers))
        await asyncio.sleep(180)
        assert senders.answers[200] >= 100
        ready = await service.read_ready()
        assert (ready["code"], ready["intake"], ready["stalled"]) == (200, False, [])
        await asyncio.gather(*(server.start() for server in servers))
        await service.wait_for_intake()
        await senders.accept(20)
    assert senders.answers.keys() <= {200, 202}, senders.refusals
    await expect_all_stored(service, senders, repeats=2 * SENDERS)


@asynccontextmanager
async def small_file_system(folder: Path, size: str):
    """Mount a file system in memory at a folder, and yield what gives it another size."""
    await asyncio.to_thread(folder.mkdir, parents=True)

    async def mount(*arguments: str) -> int:
        return await (await asyncio.create_subprocess_exec("mount", *arguments)).wait()

    if await mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)) != 0:
        pytest.skip("needs the privilege to mount a file system in memory")
    try:
        yield lambda size: mount("-o", f"remount,size={size}", str(folder))
    finally:
        unmounting = await asyncio.create_subprocess_exec("umount", "--lazy", str(folder))
        await unmounting.wait()


async def test_pushes_are_stored_at_once_while_the_disks_of_nats_are_full(tmp_path, folder):
    async with (
        small_file_system(tmp_path / "small", "24m") as resize,
        run_cluster(tmp_path / "small") as servers,
    ):
        service = IntakeService(folder, make_url(f"sqlite:///{folder}/tocsin.db"), servers)
        await service.start()
        await service.wait_for_intake()
        senders = Senders(service)
        senders.padding = "x" * 30_000
        async with senders.pushing():
            await senders.accept(20)
            await senders.accept(40, 200)
            assert await resize("400m") == 0
            # A server that could not write has stopped its streams
            for server in servers:
                await server.kill()
                await server.start()
            await service.wait_for_intake()
            await senders.accept(20)
        assert senders.answers.keys() <= {200, 202}, senders.refusals
        missing, _ = await settle(service, senders)
        kinds = await prove(service)
        await service.stop()
    assert (missing, kinds) == (set(), []), (senders.answers, missing & senders.stored_at_once)


async def find_reader(service: Service) -> int:
    """Return which of the nodes, by their ports, holds the lease of the pushes."""
    url = service.database.set(drivername="postgresql")
    connection = await asyncpg.connect(url.render_as_string(hide_password=False))
    names = "SELECT name FROM nodes ORDER BY name"
    held = "SELECT name FROM nodes JOIN intake_positions ON number = node"
    found = await connection.fetchval(held)
    ordered = [name for (name,) in await connection.fetch(names)]
    await connection.close()
    return ordered.index(found)


async def test_of_three_nodes_one_is_frozen_for_a_minute(folder, servers, own_postgres):
    url = make_url(await asyncio.to_thread(own_postgres.create, "intake"))
    nodes = sorted(
        (IntakeService(folder, url, servers) for _ in range(3)), key=lambda node: str(node.port)
    )
    status, _, errors = await nodes[0].command("db", "upgrade")
    assert status == 0, errors
    for node in nodes:
        await node.start()
        await node.wait_for_intake()
    senders = [Senders(node, f"node-{number}") for number, node in enumerate(nodes)]
    async with AsyncExitStack() as stack:
        for each in senders:
            await stack.enter_async_context(each.pushing())
        await asyncio.gather(*(each.accept(40) for each in senders))
        reader = await find_reader(nodes[0])
        os.kill(nodes[reader].pid, signal.SIGSTOP)
        await asyncio.sleep(60)
        others = [each for number, each in enumerate(senders) if number != reader]
        await asyncio.gather(*(each.accept(40) for each in others))
        os.kill(nodes[reader].pid, signal.SIGCONT)
        await asyncio.gather(*(each.accept(20) for each in others))
    for each in senders:
        missing, _ = await settle(nodes[(reader + 1) % 3], each)
        assert not missing
        assert each.answers.keys() <= {0, 200, 202, 503}, each.refusals
    _, records, _ = await read(nodes[0])
    sent = sum(each.sent for each in senders)
    kinds = await prove(nodes[(reader + 1) % 3])
    for node in nodes:
        await node.stop()
    assert records <= sent
    assert kinds == []
