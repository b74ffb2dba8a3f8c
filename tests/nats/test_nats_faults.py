"""Faults of the database, the node and NATS while senders push: what is accepted is stored."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sqlite3
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
import asyncpg
import pytest
from sqlalchemy import URL, make_url

from end_to_end.service import Service
from nats_servers import NatsServer, install_plugin, needs_servers, run_cluster
from postgres import Postgres

pytest.importorskip("nats", reason="needs the package nats-py of the development requirements")

# What runs instead: the conformance suite, and one server that is away or full
pytestmark = [needs_servers, pytest.mark.full, pytest.mark.timeout(300)]

TOKEN = "a-token-of-our-scripts"
SENDERS = 4


class IntakeService(Service):
    """A service whose intake are the servers of a cluster."""

    def __init__(self, folder: Path, database: URL, servers: list[NatsServer]) -> None:
        super().__init__(folder, database)
        self.environment |= {"PYTHONPATH": install_plugin(folder), "PUSH_TOKEN": TOKEN}
        (folder / "plugins.toml").write_text(
            f"""
            enabled = ["nats", "push"]
            [intake]
            plugin = "nats"
            servers = {json.dumps([server.url for server in servers])}
            max_mib = 50
            [providers.our-scripts]
            plugin = "push"
            format = "incident"
            token = {{ env = "PUSH_TOKEN" }}
            """
        )

    async def read_ready(self) -> dict:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.url}/readyz") as response,
        ):
            return await response.json() | {"code": response.status}

    async def wait_for_intake(self) -> None:
        async with asyncio.timeout(60):
            while not (await self.read_ready())["intake"]:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.2)


class Senders:
    """Push all the time, each an incident of its own, and note what is answered."""

    def __init__(self, service: Service, prefix: str = "case") -> None:
        self.service = service
        self.prefix = prefix
        self.answers: Counter[int] = Counter()
        self.refusals: Counter[str] = Counter()
        self.accepted: set[str] = set()
        self.stored_at_once: set[str] = set()
        """Of these, what the intake does not have."""
        self.sent = 0
        self.pause = 0.02
        self.padding = ""
        """The description of each incident."""

    @asynccontextmanager
    async def pushing(self):
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
            tasks = [asyncio.create_task(self._push(session)) for _ in range(SENDERS)]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _push(self, session: aiohttp.ClientSession) -> None:
        while True:
            self.sent += 1
            name = f"{self.prefix}-{self.sent}"
            body = {"external_id": name, "title": "Odd sign-in", "severity": "High"}
            body["description"] = self.padding
            headers = {"Authorization": f"Bearer {TOKEN}"}
            url = f"{self.service.url}/api/push/our-scripts"
            try:
                async with session.post(url, json=body, headers=headers) as response:
                    text = await response.text()
                    if response.status == 503:
                        self.refusals[text] += 1
                        assert int(response.headers["Retry-After"]) > 0
                    self.answers[response.status] += 1
                    if response.status in {200, 202}:
                        self.accepted.add(name)
                    if response.status == 200:
                        self.stored_at_once.add(name)
            except aiohttp.ClientError:
                self.answers[0] += 1
            await asyncio.sleep(self.pause)

    async def accept(self, more: int, status: int = 202) -> None:
        """Wait for so many more answers with this status."""
        enough = self.answers[status] + more
        async with asyncio.timeout(60):
            while self.answers[status] < enough:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)


QUERIES = (
    "SELECT external_id FROM incidents",
    "SELECT coalesce(sum(records), 0) FROM coverage WHERE stream = 'push'",
    "SELECT count(*) FROM intake_positions WHERE accepted > stored",
)


async def read(service: Service) -> tuple[set[str], int, int]:
    """Return the stored incidents, the records that were stored, and whether pushes wait."""
    if service.is_alone:
        with sqlite3.connect(f"file:{service.database.database}?mode=ro", uri=True) as connection:
            rows = [connection.execute(query).fetchall() for query in QUERIES]
    else:
        url = service.database.set(drivername="postgresql")
        connection = await asyncpg.connect(url.render_as_string(hide_password=False))
        rows = [await connection.fetch(query) for query in QUERIES]
        await connection.close()
    return {name for (name,) in map(tuple, rows[0])}, int(rows[1][0][0]), int(rows[2][0][0])


async def settle(service: Service, senders: Senders) -> tuple[set[str], int]:
    """Wait until all that was accepted is stored; return what is missing, and the repeats."""
    missing, records, waiting = senders.accepted, 0, 1
    try:
        async with asyncio.timeout(60):
            while missing or waiting:
                await asyncio.sleep(0.5)
                stored, records, waiting = await read(service)
                missing = senders.accepted - stored
    except TimeoutError:
        return missing, 0
    return missing, records - len(stored)


async def prove(service: Service) -> list[str]:
    """Return the kinds of what is not accounted for."""
    _, out, errors = await service.command("prove", "--since", "1h", "--json")
    assert out, errors
    return [one["kind"] for one in json.loads(out)["unaccounted"]]


async def expect_all_stored(service: Service, senders: Senders, *, repeats: int) -> None:
    """Expect what was accepted to be stored, with at most so many repeats, and accounted for."""
    missing, repeated = await settle(service, senders)
    assert not missing
    assert 0 <= repeated <= repeats
    assert await prove(service) == []


@pytest.fixture
async def servers(tmp_path):
    async with run_cluster(tmp_path / "nats") as servers:
        yield servers


@pytest.fixture
async def service(tmp_path, servers):
    folder = tmp_path / "tocsin"
    folder.mkdir()
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
    assert senders.answers.keys() <= {200, 202}
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
    assert senders.answers.keys() <= {200, 202}
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
    assert senders.answers.keys() <= {200, 202}
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


async def test_pushes_are_accepted_while_postgresql_is_away(tmp_path, servers, own_postgres):
    folder = tmp_path / "tocsin"
    folder.mkdir()
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


async def test_a_server_that_is_frozen_for_a_minute_delays_no_push_for_long(service, servers):
    senders = Senders(service)
    async with senders.pushing():
        await senders.accept(40)
        servers[0].send(signal.SIGSTOP)
        await asyncio.sleep(60)
        servers[0].send(signal.SIGCONT)
        await service.wait_for_intake()
        await senders.accept(40)
    assert senders.answers.keys() <= {200, 202}
    await expect_all_stored(service, senders, repeats=2 * SENDERS)


async def test_servers_that_are_away_for_three_minutes_are_used_again(service, servers):
    senders = Senders(service)
    senders.pause = 0.2
    async with senders.pushing():
        await senders.accept(40)
        await asyncio.gather(*(server.kill() for server in servers))
        await asyncio.sleep(180)
        assert senders.answers[200] >= 100
        await asyncio.gather(*(server.start() for server in servers))
        await service.wait_for_intake()
        await senders.accept(20)
    assert senders.answers.keys() <= {200, 202}
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


async def test_pushes_are_stored_at_once_while_the_disks_of_nats_are_full(tmp_path):
    (folder := tmp_path / "tocsin").mkdir()
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
        assert senders.answers.keys() <= {200, 202}
        missing, _ = await settle(service, senders)
        kinds = await prove(service)
        await service.stop()
    assert not missing
    assert kinds == []


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


async def test_of_three_nodes_one_is_frozen_for_a_minute(tmp_path, servers, own_postgres):
    folder = tmp_path / "tocsin"
    folder.mkdir()
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
