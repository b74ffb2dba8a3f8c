"""Pushes against a service in a process of its own: what they take of its memory."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import aiohttp
import pytest
from sqlalchemy import URL

from end_to_end.service import Service

TOKEN = "a-token-of-our-scripts"
CONNECTIONS = 300
MIB = 2**20
MOST_AT_ONCE = 400
"""MiB for four bodies of 16 MiB that are handled at once."""
MOST_KEPT = 250
"""MiB that a node keeps after all of them."""


class Pushed(Service):
    """A service that takes pushes, and is read for its memory."""

    def __init__(self, folder: Path, database: URL) -> None:
        super().__init__(folder, database)
        self.environment |= {"TOCSIN_RATE_LIMIT": "100000", "TOCSIN_RATE_BURST": "100000"}
        (folder / "token").write_text(TOKEN)
        (folder / "plugins.toml").write_text(
            """
            enabled = ["push"]
            [providers.scripts]
            plugin = "push"
            format = "incident"
            token = { file = "token" }
            """
        )

    def read_memory(self) -> float:
        """Return the resident memory of the process, in MiB."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        [line] = [line for line in lines if line.startswith("VmRSS")]
        return int(line.split()[1]) / 1_024


@pytest.fixture
async def service(tmp_path: Path, migrated_url: URL) -> AsyncIterator[Pushed]:
    service = Pushed(tmp_path, migrated_url)
    await service.start()
    yield service
    await service.kill()


async def watch(service: Pushed, peak: list[float]) -> None:
    while True:
        peak[0] = max(peak[0], service.read_memory())
        await asyncio.sleep(0.02)


async def open_push(service: Pushed, headers: str, body: bytes) -> bytes:
    """Send head and body on a connection of its own, and return the start of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    head = f"POST /api/push/scripts HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}\r\n\r\n"
    try:
        writer.write(head.encode() + body)
        with suppress(ConnectionError, TimeoutError):
            await asyncio.wait_for(writer.drain(), 3)
        with suppress(ConnectionError, TimeoutError):
            return await asyncio.wait_for(reader.read(200), 3)
        return b""
    finally:
        writer.close()


def forge() -> str:
    signature = "v1," + "A" * 43 + "="
    return (
        f"webhook-id: 1\r\nwebhook-timestamp: {int(time.time())}\r\nwebhook-signature: {signature}"
    )


JSON = "Content-Type: application/json"
OPEN = f"{JSON}\r\nContent-Length: {MIB + 1}"
ATTACKS = {
    "no credential": (OPEN, b"[" * MIB, 60),
    "wrong token": (f"{OPEN}\r\nAuthorization: Bearer wrong-{TOKEN}", b"[" * MIB, 60),
    "forged signatures": (f"{OPEN}\r\nforged", b"[" * MIB, 80),
    "forged, chunked": (
        f"{JSON}\r\nTransfer-Encoding: chunked\r\nforged",
        b"1\r\n[\r\n" * 2_000,
        80,
    ),
    "small chunks for no endpoint": (
        f"{JSON}\r\nTransfer-Encoding: chunked",
        b"1\r\n[\r\n" * 170_000,
        60,
    ),
    "large headers": ("".join(f"X-{n}: {'a' * 8_000}\r\n" for n in range(60)), b"", 80),
    "slow bodies with the token": (
        f"{JSON}\r\nContent-Length: {16 * MIB}\r\nAuthorization: Bearer {TOKEN}",
        b"[" * MIB,
        150,
    ),
}


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_connections_take_a_bounded_memory(service, record_property):
    for name, (fields, body, most) in ATTACKS.items():
        before = service.read_memory()
        peak = [before]
        watcher = asyncio.create_task(watch(service, peak))
        headers = fields.replace("forged", forge())
        answers = await asyncio.gather(
            *(open_push(service, headers, body) for _ in range(CONNECTIONS))
        )
        watcher.cancel()
        assert not any(answer.startswith(b"HTTP/1.1 2") for answer in answers), name
        record_property(name, round(peak[0] - before))
        assert peak[0] - before < most, name
        await expect_well(service)
    record_property("cases", len(ATTACKS) * CONNECTIONS)


CASE = {"external_id": "case-17", "title": "Odd sign-in", "severity": "High"}


def make_bodies() -> dict[str, bytes]:
    """Return what exhausts memory; each worker would keep more than 200 MB of constants."""
    return {
        "empty objects": b"[" + b"{}," * 5_000_000 + b"{}]",
        "empty lists": b"[" + b"[]," * 5_000_000 + b"[]]",
        "numbers": b"[" + b"1," * 7_900_000 + b"1]",
        "depth": b"[" * 16_000_000,
        "depth of objects": b'{"a":' * 3_000_000,
        "depth that is closed": b"[" * 8_000_000 + b"]" * 8_000_000,
        "one good among bad": b"[" + b"{}," * 90_000 + json.dumps(CASE).encode() + b"]",
        "many members": b"{" + b",".join(b'"%d":1' % n for n in range(1_200_000)) + b"}",
        "one member again and again": b"[{" + b'"title":"a",' * 1_200_000 + b'"title":"a"}]',
        "a long text": b'[{"external_id":"1","title":"' + b"a" * 16_000_000 + b'"}]',
        "escapes": b'[{"external_id":"1","title":"' + b"\\u0416" * 2_600_000 + b'"}]',
        "wide text": b'[{"external_id":"1","title":"' + "😀".encode() * 3_900_000 + b'"}]',
        "a long number": b'[{"external_id":' + b"9" * 16_000_000 + b"}]",
        "an exponent": b'[{"external_id":1e' + b"9" * 16_000_000 + b"}]",
        "no JSON": b"\xff" * 16_000_000,
        "lines": b"\n" * 16_000_000,
        "a gzip bomb": gzip.compress(b"[" + b"{}," * 60_000_000, 1),
    }


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_bodies_of_a_sender_with_the_token_take_a_bounded_memory(service, record_property):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    bodies = make_bodies()
    start = service.read_memory()
    async with aiohttp.ClientSession(headers=headers) as session:

        async def push(body: bytes, name: str) -> int:
            encoding = {"Content-Encoding": "gzip"} if "gzip" in name else {}
            url = f"{service.url}/api/push/scripts"
            with suppress(aiohttp.ClientConnectionError):
                async with session.post(url, data=BytesIO(body), headers=encoding) as response:
                    return response.status
            return 0

        for name, body in bodies.items():
            before = service.read_memory()
            peak = [before]
            watcher = asyncio.create_task(watch(service, peak))
            await asyncio.gather(*(push(body, name) for _ in range(4)))
            watcher.cancel()
            record_property(name, round(peak[0] - before))
            assert peak[0] - before < MOST_AT_ONCE, name
            await expect_well(service)
    assert service.read_memory() < start + MOST_KEPT
    record_property("cases", 4 * len(bodies))


async def expect_well(service: Service) -> None:
    """Expect that the service is ready, and answers soon."""
    began = time.monotonic()
    async with aiohttp.ClientSession() as session:
        assert await service.is_ready(session)
    assert time.monotonic() - began < 3
