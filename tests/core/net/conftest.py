"""Clients, listeners, made-up names and certificates for the tests of the guard."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from itertools import count
from pathlib import Path
from threading import Event

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

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


class Authority:
    """Issues certificates, each in a PEM file together with its key."""

    def __init__(self, folder: Path, name: str = "Authority") -> None:
        self._folder = folder
        self._numbers = count()
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.file = self._write(self._sign(self._key, self._name, [], authority=True))

    def self_signed(self, *names: str) -> str:
        """Return the file of a certificate of the authority's own, which serves for `names`."""
        names = [_general_name(name) for name in names]
        return self._write(self._sign(self._key, self._name, names, authority=True), self._key)

    def issue(self, *names: str, age: timedelta = timedelta(0)) -> str:
        """Return the file of a certificate for `names`, which is valid for a day, and its key."""
        certificate, key = self._issue(names, age)
        return self._write(certificate, key)

    def issue_apart(self, *names: str) -> tuple[str, str]:
        """Return a file of a certificate for `names`, and one of its key."""
        certificate, key = self._issue(names)
        return self._write(certificate), self._write(key)

    def _issue(self, names, age=timedelta(0)):
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "subject")])
        return self._sign(key, subject, [_general_name(name) for name in names], age=age), key

    def server(self, *names: str, **options) -> ssl.SSLContext:
        """Return what a server for `names` needs."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.issue(*names, **options))
        return context

    def _sign(self, key, subject, names, *, authority=False, age=timedelta(0)):
        start = datetime.now(UTC) - timedelta(minutes=5) - age
        builder = (
            x509.CertificateBuilder(self._name, subject, key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(start + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if authority:
            builder = builder.add_extension(_SIGNS_CERTIFICATES, critical=True)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, *blocks: x509.Certificate | ec.EllipticCurvePrivateKey) -> str:
        path = self._folder / f"{next(self._numbers)}-{id(self)}.pem"
        path.write_bytes(b"".join(_pem(block) for block in blocks))
        return str(path)


def _pem(block: x509.Certificate | ec.EllipticCurvePrivateKey, passphrase: bytes = b"") -> bytes:
    if isinstance(block, x509.Certificate):
        return block.public_bytes(serialization.Encoding.PEM)
    encryption = (
        serialization.BestAvailableEncryption(passphrase)
        if passphrase
        else serialization.NoEncryption()
    )
    form = serialization.PrivateFormat.PKCS8
    return block.private_bytes(serialization.Encoding.PEM, form, encryption)


_SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


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
        path.write_bytes(_pem(ec.generate_private_key(ec.SECP256R1()), passphrase))
        return str(path)

    return write
