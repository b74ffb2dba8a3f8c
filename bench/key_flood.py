"""Effect of a flood of invalid keys from one address on clients with valid keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from bench.comparison import OURS, interleave, report_times
from bench.databases import KINDS, NewUrl, new_urls
from bench.http_reads import PATHS_OF_ONE, node, prepare
from bench.load import rate
from bench.subprocesses import child
from tocsin.credentials import generate_key

CONNECTIONS = 64
ADDRESS = "127.0.0.2"


def run(rounds: int) -> None:
    """Measure every kind of database."""
    for kind in KINDS:
        with new_urls(kind) as new_url:
            _compare(kind, new_url, rounds)


def _compare(kind: str, new_url: NewUrl, rounds: int) -> None:
    url, _, key = asyncio.run(prepare(new_url))
    headers = {"X-API-Key": key}
    with node(url) as port:
        variants = {
            OURS: partial(_flooded, port, headers),
            "without the flood": partial(rate, port, PATHS_OF_ONE, headers),
        }
        rates = asyncio.run(interleave(variants, rounds))
    report_times(f"GET one during a flood of invalid keys, {kind}", "requests", rates)


async def _flooded(port: int, headers: dict[str, str]) -> float:
    with child(flood, port):
        await asyncio.sleep(1)  # until the address is rate-limited
        return await rate(port, PATHS_OF_ONE, headers)


def flood(send: Callable[[int], None], port: int) -> None:
    """Send invalid keys as fast as they are refused."""
    asyncio.run(_flood(send, port))


async def _flood(send: Callable[[int], None], port: int) -> None:
    send(port)
    await asyncio.gather(*(_refused(port) for _ in range(CONNECTIONS)))


async def _refused(port: int) -> None:
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, local_addr=(ADDRESS, 0)
            )
            while True:
                _, key = generate_key()
                request = f"GET {PATHS_OF_ONE[0]} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {key}"
                writer.write(f"{request}\r\n\r\n".encode())
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r", 1)[0])
                await reader.readexactly(length)
