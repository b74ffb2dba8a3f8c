"""Pushes that a node stores at once in PostgreSQL, and those that an intake on NATS accepts."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp
import orjson

from bench.databases import DurablePostgres
from bench.postgres_usage import ServerWatch, Usage, read_cpu
from bench.scale import TOKEN, end_process, make_incident, wait_until_ready
from bench.sizes import QUICK
from bench.subprocesses import free_port

from nats_servers import NatsServer, install_plugin, run_cluster  # isort: skip - bench.databases adds its place

SENDERS = 8
_SETTLED_SECONDS = 240
_PUSHES = 500 if QUICK in sys.argv else 4_000
_PROVIDER = """
[providers.pushed]
plugin = "push"
format = "incident"
token = { env = "BENCH_TOKEN" }
"""
_STORED = "SELECT count(*) FROM incidents"


@dataclass(frozen=True)
class Measured:
    """What one way took for all pushes."""

    name: str
    accepted: float
    """Seconds until all were accepted."""
    stored: float
    """Seconds until all were stored."""
    node_cpu: float
    nats_cpu: float
    nats_bytes: int
    server: Usage


def run(_rounds: int) -> None:
    """Measure pushes of one incident each, with and without an intake of three NATS servers."""
    os.environ["BENCH_TOKEN"] = TOKEN
    with TemporaryDirectory(prefix="tocsin-bench-") as name, DurablePostgres(Path(name)) as server:
        results = [asyncio.run(_measure(server, way)) for way in ("PostgreSQL", "NATS")]
    print(f"pushes of one incident: {_PUSHES:,} from {SENDERS} senders")
    print(
        f"{'way':10}  accepted/s  stored/s  CPU ms per push: node  PostgreSQL  NATS  "
        "bytes per push: WAL    NATS"
    )
    for result in results:
        figures = (
            f"{_PUSHES / result.accepted:10.0f}",
            f"{_PUSHES / result.stored:8.0f}",
            f"{1000 * result.node_cpu / _PUSHES:21.2f}",
            f"{1000 * result.server.cpu / _PUSHES:10.2f}",
            f"{1000 * result.nats_cpu / _PUSHES:4.2f}",
            f"{result.server.wal / _PUSHES:19,.0f}",
            f"{result.nats_bytes / _PUSHES:6,.0f}",
        )
        print(f"{result.name:10}", *figures, sep="  ")


async def _measure(server: DurablePostgres, way: str) -> Measured:
    database = f"intake_{way.lower()}"
    dsn = await asyncio.to_thread(server.create, database)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tocsin-bench-")))
        servers: Sequence[NatsServer] = ()
        if way == "NATS":
            servers = await stack.enter_async_context(run_cluster(folder / "nats"))
        node = _Node(folder, dsn, servers)
        await asyncio.to_thread(node.prepare)
        process = node.start()
        stack.callback(end_process, process)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        watch = await ServerWatch.open(dsn, server.home / "data")
        stack.push_async_callback(watch.close)
        await node.wait_until_ready(session)
        numbers = iter(range(_PUSHES + SENDERS))
        for _ in range(SENDERS):  # nothing is then done for the first time
            await node.push(session, next(numbers))
        await _until_stored(watch, SENDERS)
        nats = [server.process.pid for server in servers if server.process is not None]
        await watch.fetch("CHECKPOINT")
        before, cpu = await watch.mark(), (read_cpu(process.pid), sum(map(read_cpu, nats)))
        begin = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for _ in range(SENDERS):
                group.create_task(_send(node, session, numbers))
        accepted = time.monotonic() - begin
        await _until_stored(watch, _PUSHES + SENDERS)
        return Measured(
            name=way,
            accepted=accepted,
            stored=time.monotonic() - begin,
            node_cpu=read_cpu(process.pid) - cpu[0],
            nats_cpu=sum(map(read_cpu, nats)) - cpu[1],
            nats_bytes=sum(map(_measure_folder, (server.store for server in servers))),
            server=await watch.since(before),
        )


class _Node:
    """A node that accepts pushes."""

    def __init__(self, folder: Path, dsn: str, servers: Sequence[NatsServer]) -> None:
        self._url = f"http://127.0.0.1:{free_port()}"
        self._folder = folder
        self._has_intake = bool(servers)
        enabled, intake = ["push"], ""
        self._environment = os.environ | {
            "TOCSIN_DATABASE_URL": dsn,
            "TOCSIN_DATA_DIR": str(folder / "data"),
            "TOCSIN_PLUGINS_FILE": str(folder / "plugins.toml"),
            "TOCSIN_PORT": self._url.rpartition(":")[2],
            "TOCSIN_ENCRYPTION_KEY": "A" * 43 + "=",
        }
        if servers:
            enabled.append("nats")
            urls = json.dumps([server.url for server in servers])
            intake = f'[intake]\nplugin = "nats"\nmax_mib = 200\nservers = {urls}\n'
            self._environment["PYTHONPATH"] = install_plugin(folder)
        plugins = f"enabled = {json.dumps(enabled)}\n{intake}{_PROVIDER}"
        (folder / "plugins.toml").write_text(plugins)

    def prepare(self) -> None:
        """Create the schema, and apply the configuration."""
        for command in ("db upgrade", "apply"):
            assert self._run(command).wait() == 0, self._log.read_text()

    def start(self) -> subprocess.Popen[bytes]:
        """Start the service."""
        return self._run("serve")

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    def _run(self, command: str) -> subprocess.Popen[bytes]:
        line = [sys.executable, "-m", "tocsin", *command.split()]
        with self._log.open("ab") as log:
            return subprocess.Popen(line, env=self._environment, stderr=log, stdout=log)

    async def wait_until_ready(self, session: aiohttp.ClientSession) -> None:
        """Return once it is ready, with its intake if it has one."""
        async with asyncio.timeout(60):
            await wait_until_ready(session, self._url)
            while self._has_intake:
                async with session.get(f"{self._url}/readyz") as response:
                    if (await response.json())["intake"]:
                        return
                await asyncio.sleep(0.2)

    async def push(self, session: aiohttp.ClientSession, number: int) -> None:
        """Push one incident, which has to be accepted the first time."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        body, address = orjson.dumps(make_incident(number)), f"{self._url}/api/push/pushed"
        async with session.post(address, data=body, headers=headers) as response:
            expected = 202 if self._has_intake else 200
            assert response.status == expected, await response.text()


async def _send(node: _Node, session: aiohttp.ClientSession, numbers: Iterator[int]) -> None:
    for number in numbers:
        await node.push(session, number)


async def _until_stored(watch: ServerWatch, count: int) -> None:
    async with asyncio.timeout(_SETTLED_SECONDS):
        while await watch.fetch(_STORED) < count:  # noqa: ASYNC110 - asks a database
            await asyncio.sleep(0.05)


def _measure_folder(folder: Path) -> int:
    """Return the bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
