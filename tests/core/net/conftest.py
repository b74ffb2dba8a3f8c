"""Clients, listeners, made-up names and certificates for the tests of the guard."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from ipaddress import ip_address
from threading import Event

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from certificates import Authority, as_pem
from tocsin.net import open_client


@pytest.fixture
async def make_client():
    """Open clients that are closed in the end."""
    clients = []

    def make(**options):
        clients.append(open_client(**options))
        return clients[-1]

    yield make
    for client in clients:
        await client.close()


@pytest.fixture
def connects(monkeypatch):
    """Every address that the process connects to, as far as the test has come."""
    addresses = []
    connect = socket.socket.connect

    def recorded(self, address):
        addresses.append(address)
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", recorded)
    return addresses


class Listener:
    """Counts connections, on every address of this machine; each gets `answer` and is closed."""

    connections = 0

    def __init__(self, answer):
        self.answer = answer

    async def _connected(self, reader, writer):
        self.connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(self.answer)
        await writer.drain()
        writer.close()

    async def start(self):
        self._server = await asyncio.start_server(self._connected, None, 0)
        families = {socket.AF_INET: 0, socket.AF_INET6: 0}
        families.update({each.family: each.getsockname()[1] for each in self._server.sockets})
        self.port = families[socket.AF_INET]
        self.port6 = families[socket.AF_INET6]
        return self

    async def stop(self):
        self._server.close()
        await self._server.wait_closed()


@pytest.fixture
async def make_listener():
    listeners = []

    async def make(answer):
        listeners.append(await Listener(answer).start())
        return listeners[-1]

    yield make
    for listener in listeners:
        await listener.stop()


@pytest.fixture
async def listener(make_listener):
    return await make_listener(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")


class Hanging:
    """An answer that does not come before it is over."""

    def __init__(self) -> None:
        self.begun = Event()
        self.over = Event()


@pytest.fixture
def hanging():
    answer = Hanging()
    yield answer
    answer.over.set()


class Names(dict[str, list[list[str] | Hanging]]):
    """Made-up names, each with its answers: one for each look-up, the last for all others.

    A name with no answers is not found. `asked` is every name looked up.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []

    def answer(self, host: str) -> list[str]:
        answers = self[host][0] if len(self[host]) == 1 else self[host].pop(0)
        if isinstance(answers, Hanging):
            answers.begun.set()
            answers.over.wait(10)
            answers = []
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return answers


@pytest.fixture
def dns(monkeypatch):
    names = Names()
    system = socket.getaddrinfo

    def getaddrinfo(host, port, family=0, *args, **kwargs):
        names.asked.append(host)
        if host not in names:
            return system(host, port, family, *args, **kwargs)
        found = [_address_info(answer, port) for answer in names.answer(host)]
        return [each for each in found if family in (0, each[0])]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return names


def _address_info(address, port):
    if ip_address(address).version == 4:
        return socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)
    return socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, port, 0, 0)


@pytest.fixture
def authority(tmp_path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def stranger(tmp_path) -> Authority:
    """Another authority."""
    return Authority(tmp_path, "Stranger")


@pytest.fixture
def self_signed(authority) -> str:
    """A certificate for 127.0.0.1 that is its own authority, with its key."""
    return authority.self_signed("127.0.0.1")


@pytest.fixture
def write_key(tmp_path) -> Callable[..., str]:
    """Write a private key that belongs to no certificate, and return its path."""

    def write(passphrase: bytes = b"") -> str:
        path = tmp_path / "lone-key.pem"
        path.write_bytes(as_pem(ec.generate_private_key(ec.SECP256R1()), passphrase))
        return str(path)

    return write
