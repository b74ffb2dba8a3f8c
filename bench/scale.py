"""Several nodes on one PostgreSQL: rates, CPU time, latency and waiting for each other."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import count, cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import orjson

from bench.databases import DurablePostgres
from bench.delivery import SECRET
from bench.postgres_usage import ServerWatch, read_cpu
from bench.receiver import count_received, receive
from bench.scale_report import DESTINATIONS, Load, Measured, report
from bench.sizes import QUICK
from bench.subprocesses import child, free_port

NODES = (1, 2, 4)
FEEDS = 4
SENDERS = 8
BATCH = 20
"""Incidents in a pushed body."""
TOKEN = "a-token-of-the-benchmark"
_READY_SECONDS = 60
_SETTLED_SECONDS = 240
_FEED = """
[providers.feed-{number}]
plugin = "suricata"
path = "{folder}/eve-{number}.json"
poll_interval = "200ms"
"""
_DESTINATION = """
[destinations.receiver-{number}]
plugin = "webhook"
url = "{url}/hook"
secret = {{ env = "BENCH_SECRET" }}
allow_networks = ["127.0.0.1/32"]
"""
_PLUGINS = """
enabled = ["webhook", "push", "suricata"]

[providers.pushed]
plugin = "push"
format = "incident"
token = {{ env = "BENCH_TOKEN" }}
{feeds}{destinations}
"""
_HAS_STORED = "SELECT count(*) >= $1 FROM incidents"
_HAS_ROUTED = "SELECT NOT EXISTS (SELECT FROM events WHERE NOT routed)"
_HAS_SETTLED = f"""
{_HAS_ROUTED} AND NOT EXISTS (SELECT FROM deliveries WHERE state = 'pending')
"""
_DELAYS = """
SELECT percentile_cont($2::float8[]) WITHIN GROUP (ORDER BY a.started_at - e.timestamp)
FROM events e JOIN deliveries d ON d.event_id = e.id JOIN attempts a ON a.delivery_id = d.id
WHERE a.number = 1 AND e.timestamp >= $1
"""


WHOLE_LOAD = Load(pushed=4_000, polled=4_000, paced=600, per_second=20)
QUICK_LOAD = Load(pushed=600, polled=600, paced=100, per_second=20)


def run(_rounds: int) -> None:
    """Measure 1, 2 and 4 nodes; with `--quick`, in about two minutes on two idle cores."""
    load = QUICK_LOAD if QUICK in sys.argv else WHOLE_LOAD
    os.environ |= {"BENCH_SECRET": SECRET, "BENCH_TOKEN": TOKEN}
    results = []
    with TemporaryDirectory(prefix="tocsin-bench-") as name, DurablePostgres(Path(name)) as server:
        for nodes in NODES:
            with child(receive) as port, TemporaryDirectory() as folder:
                scene = Scene(server, Path(folder), f"http://127.0.0.1:{port}", nodes, load)
                results.append(asyncio.run(scene.measure()))
    report(results)


class Scene:
    """A number of nodes on a new database, with sources and a receiver."""

    def __init__(
        self, server: DurablePostgres, folder: Path, receiver: str, nodes: int, load: Load
    ) -> None:
        self._server = server
        self._folder = folder
        self._receiver = receiver
        self._nodes = nodes
        self._load = load
        self._numbers = count(1)
        self._urls = [f"http://127.0.0.1:{free_port()}" for _ in range(nodes)]
        feeds = "".join(_FEED.format(number=n, folder=folder) for n in range(FEEDS))
        destinations = "".join(
            _DESTINATION.format(number=n, url=receiver) for n in range(DESTINATIONS)
        )
        plugins = _PLUGINS.format(feeds=feeds, destinations=destinations)
        (folder / "plugins.toml").write_text(plugins)
        for number in range(FEEDS):
            (folder / f"eve-{number}.json").touch()

    async def measure(self) -> Measured:
        """Return what this number of nodes does with the load."""
        database = f"scale_{self._nodes}"
        dsn = await asyncio.to_thread(self._server.create, database)
        for number in range(self._nodes):
            await asyncio.to_thread(self._server.add_superuser, _name_role(database, number))
        for command in ("db upgrade", "apply"):
            process = self._tocsin(command, 0, database)
            assert await asyncio.to_thread(process.wait) == 0, self._log(0).read_text()
        watch = await ServerWatch.open(dsn, self._server.home / "data")
        try:
            return await self._measure(watch, database)
        finally:
            await watch.close()

    async def _measure(self, watch: ServerWatch, database: str) -> Measured:
        async with self._running(database) as processes, aiohttp.ClientSession() as session:
            await self._warm_up(session, watch)
            idle_cpu = await self._idle(watch, processes)
            await watch.fetch("CHECKPOINT")
            before, cpu = await watch.mark(), sum(map(read_cpu, processes))
            async with watch.sampling() as samples:
                pushed, stored, routed, settled = await self._load_all(session, watch)
            server = await watch.since(before)
            node_cpu = sum(map(read_cpu, processes)) - cpu
            before, cpu = await watch.mark(), sum(map(read_cpu, processes))
            delays = await self._measure_delays(session, watch)
            paced = await watch.since(before)
            paced_cpu = sum(map(read_cpu, processes)) - cpu
        rows = await watch.count_rows()
        delivered = await watch.fetch("SELECT count(*) FROM deliveries")
        assert delivered == await count_received(self._receiver)
        return Measured(
            nodes=self._nodes,
            load=self._load,
            pushed=pushed,
            stored=stored,
            routed=routed,
            settled=settled,
            node_cpu=node_cpu,
            idle_cpu=idle_cpu,
            server=server,
            rows=rows / delivered,
            paced_cpu=paced_cpu + paced.cpu - idle_cpu * self._nodes * paced.seconds,
            delays=delays,
            samples=samples,
        )

    @asynccontextmanager
    async def _running(self, database: str) -> AsyncIterator[list[int]]:
        """Run the nodes, each as a database role of its own; yields their process IDs."""
        async with AsyncExitStack() as stack:
            processes = []
            for number in range(self._nodes):
                process = self._tocsin("serve", number, database)
                stack.callback(end_process, process)
                processes.append(process.pid)
            async with aiohttp.ClientSession() as session, asyncio.timeout(_READY_SECONDS):
                for url in self._urls:
                    await wait_until_ready(session, url)
            yield processes

    def _tocsin(self, command: str, number: int, database: str) -> subprocess.Popen[bytes]:
        """Run a command of Tocsin as a node; its role shows which node waits for which."""
        role = _name_role(database, number)
        environment = os.environ | {
            "TOCSIN_DATABASE_URL": self._server.dsn(database, role),
            "TOCSIN_DATA_DIR": str(self._folder / f"node-{number}"),
            "TOCSIN_PLUGINS_FILE": str(self._folder / "plugins.toml"),
            "TOCSIN_PORT": self._urls[number].rpartition(":")[2],
            "TOCSIN_BASE_URL": "https://tocsin.example",
            "TOCSIN_ENCRYPTION_KEY": "A" * 43 + "=",
        }
        line = [sys.executable, "-m", "tocsin", *command.split()]
        with self._log(number).open("ab") as log:
            return subprocess.Popen(line, env=environment, stderr=log, stdout=log)

    def _log(self, number: int) -> Path:
        return self._folder / f"log-{number}"

    async def _warm_up(self, session: aiohttp.ClientSession, watch: ServerWatch) -> None:
        """Have every node store and send something, so that nothing is done for the first time."""
        for url in self._urls * 2:
            await self._push(session, url, BATCH)
        for number in range(FEEDS):
            self._feed(number, 10)
        incidents = BATCH * 2 * self._nodes + 10 * FEEDS
        await self._until_settled(watch, incidents)

    async def _idle(self, watch: ServerWatch, processes: Iterable[int]) -> float:
        """Return the CPU seconds of one node, with its share of the server's, in a second."""
        processes = list(processes)
        await asyncio.sleep(1)
        before, cpu = await watch.mark(), sum(map(read_cpu, processes))
        await asyncio.sleep(4)
        used = await watch.since(before)
        return (used.cpu + sum(map(read_cpu, processes)) - cpu) / used.seconds / self._nodes

    async def _load_all(
        self, session: aiohttp.ClientSession, watch: ServerWatch
    ) -> tuple[float, float, float, float]:
        """Return the seconds until all was pushed, stored, routed, and settled."""
        known = await watch.fetch("SELECT count(*) FROM incidents")
        total = known + self._load.pushed + self._load.polled
        begin = time.monotonic()
        for number in range(FEEDS):
            self._feed(number, self._load.polled // FEEDS)
        bodies, urls = iter(range(self._load.pushed // BATCH)), cycle(self._urls)
        async with asyncio.TaskGroup() as group:
            for _ in range(SENDERS):
                group.create_task(self._send(session, bodies, urls))
        pushed = time.monotonic() - begin
        await _until(watch, _HAS_STORED, total)
        stored = time.monotonic() - begin
        await _until(watch, _HAS_ROUTED)
        routed = time.monotonic() - begin
        await self._until_settled(watch, total)
        return pushed, stored, routed, time.monotonic() - begin

    async def _send(
        self, session: aiohttp.ClientSession, bodies: Iterable[int], urls: Iterable[str]
    ) -> None:
        for _, url in zip(bodies, urls, strict=False):
            await self._push(session, url, BATCH)

    async def _measure_delays(
        self, session: aiohttp.ClientSession, watch: ServerWatch
    ) -> list[float]:
        """Return the median and 99 of 100 of the delays at a fixed rate, in milliseconds."""
        known = await watch.fetch("SELECT count(*) FROM incidents")
        begun, begin, urls = datetime.now(UTC), time.monotonic(), cycle(self._urls)
        async with asyncio.TaskGroup() as group:
            for number in range(self._load.paced):
                due = begin + number / self._load.per_second
                await asyncio.sleep(due - time.monotonic())
                group.create_task(self._push(session, next(urls), 1))
        await self._until_settled(watch, known + self._load.paced)
        since = int(begun.timestamp() * 1_000_000)
        return [delay / 1_000 for delay in await watch.fetch(_DELAYS, since, [0.5, 0.99])]

    async def _until_settled(self, watch: ServerWatch, incidents: int) -> None:
        """Return when so many incidents are stored, and all their deliveries are settled."""
        await _until(watch, _HAS_STORED, incidents)
        await _until(watch, _HAS_SETTLED)

    async def _push(self, session: aiohttp.ClientSession, url: str, incidents: int) -> None:
        body = orjson.dumps([make_incident(next(self._numbers)) for _ in range(incidents)])
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        while True:  # a sender repeats what a busy database has not taken
            address = f"{url}/api/push/pushed"
            async with session.post(address, data=body, headers=headers) as response:
                if response.status == 200:
                    return
                assert response.status == 503, await response.text()
            await asyncio.sleep(0.5)

    def _feed(self, number: int, alerts: int) -> None:
        with (self._folder / f"eve-{number}.json").open("ab") as file:
            file.write(b"".join(_alert(next(self._numbers)) for _ in range(alerts)))


async def _until(watch: ServerWatch, condition: str, *values: int) -> None:
    """Return once a condition holds."""
    async with asyncio.timeout(_SETTLED_SECONDS):
        while not await watch.fetch(condition, *values):  # noqa: ASYNC110 - asks a database
            await asyncio.sleep(0.02)


def _name_role(database: str, number: int) -> str:
    return f"node_{database}_{number}"


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End a process, and wait for its end."""
    process.terminate()
    process.wait()


async def wait_until_ready(session: aiohttp.ClientSession, url: str) -> None:
    """Return once a node is ready."""
    while True:
        try:
            async with session.get(f"{url}/readyz") as response:
                if response.status == 200:
                    return
        except aiohttp.ClientConnectionError:
            pass
        await asyncio.sleep(0.1)


def make_incident(number: int) -> dict[str, Any]:
    """Return an incident as senders push it."""
    host = f"WS-{number % 5000:04}"
    return {
        "external_id": f"case-{number}",
        "title": f"Suspicious PowerShell command line on {host}",
        "description": f"A process on {host} ran an encoded command and opened connections. " * 3,
        "severity": "High",
        "occurred_at": datetime.now(UTC).isoformat(),
        "entities": [
            {"kind": "ip", "value": f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"},
            {"kind": "host", "value": host},
            {"kind": "user", "value": f"user{number % 3000}@corp.example"},
            {"kind": "domain", "value": f"c{number % 700}.bad.example"},
        ],
    }


def _alert(number: int) -> bytes:
    moment = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(seconds=number)
    alert = {
        "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%S.000001+0000"),
        "flow_id": number,
        "event_type": "alert",
        "src_ip": "198.51.100.7",
        "src_port": 40000,
        "dest_ip": "192.0.2.10",
        "dest_port": 80,
        "proto": "TCP",
        "alert": {
            "action": "allowed",
            "gid": 1,
            "signature_id": 9_000_000 + number,
            "rev": 1,
            "signature": f"EXAMPLE Exploit attempt {number}",
            "category": "Attempted Administrator Privilege Gain",
            "severity": 1,
        },
    }
    return orjson.dumps(alert) + b"\n"
