"""Faults of the database, the node and NATS while senders push: what is accepted is stored."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sqlite3
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
import asyncpg
import pytest
from sqlalchemy import URL, make_url

from end_to_end.service import Service
from nats_servers import ROOT, NatsServer, needs_servers, run_cluster
from postgres import Postgres

pytest.importorskip("nats", reason="needs the package nats-py of the development requirements")

# What runs instead: the conformance suite, and one server that is away or full
pytestmark = [needs_servers, pytest.mark.full, pytest.mark.timeout(300)]

TOKEN = "a-token-of-our-scripts"
SENDERS = 4
METADATA = "Metadata-Version: 2.1\nName: tocsin-nats\nVersion: 0.1.0\n"


def install_plugin(folder: Path) -> str:
    """Return the PYTHONPATH on which the plugin is installed."""
    described = folder / "tocsin_nats-0.1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(METADATA)
    (described / "entry_points.txt").write_text("[tocsin.plugins]\nnats = tocsin_nats\n")
    return f"{folder}:{ROOT / 'distributions' / 'tocsin-nats' / 'src'}"


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

    def __init__(self, service: Service) -> None:
        self.service = service
        self.answers: Counter[int] = Counter()
        self.refusals: Counter[str] = Counter()
        self.accepted: set[str] = set()
        self.stored_at_once: set[str] = set()
        """Of these, what the intake does not have."""
        self.sent = 0

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
            name = f"case-{self.sent}"
            body = {"external_id": name, "title": "Odd sign-in", "severity": "High"}
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
            await asyncio.sleep(0.02)

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
    missing, repeats = await settle(service, senders)
    assert not missing
    assert 0 <= repeats <= 3 * SENDERS
    assert await prove(service) == []


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
    missing, repeats = await settle(service, senders)
    assert not missing
    assert 0 <= repeats <= 3 * SENDERS
    assert await prove(service) == []


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
    missing, repeats = await settle(service, senders)
    assert not missing
    assert 0 <= repeats <= 2 * SENDERS
    assert await prove(service) == []


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
    missing, repeats = await settle(service, senders)
    assert not missing
    assert 0 <= repeats <= 6 * SENDERS
    assert await prove(service) == []


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
