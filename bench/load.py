"""Minimal load generator: persistent connections with one request at a time."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle

CONNECTIONS = 8
SECONDS = 1.5
_HEAD = re.compile(
    rb"HTTP/1\.1 200 .*?\r\ncontent-length: (\d+)\r\n.*?\r\n\r\n", re.IGNORECASE | re.DOTALL
)


class _Connection(asyncio.Protocol):
    def __init__(self, requests: Iterator[bytes]) -> None:
        self.answered = 0
        self._requests = requests
        self._received = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        transport.write(next(self._requests))

    def data_received(self, data: bytes) -> None:
        self._received += data
        head = _HEAD.match(self._received)
        if head and len(self._received) == head.end() + int(head[1]):
            self._received.clear()
            self.answered += 1
            self._transport.write(next(self._requests))
        elif b"\r\n\r\n" in self._received and not head:
            raise AssertionError(bytes(self._received))


async def rate(port: int, paths: Sequence[str], headers: Mapping[str, str]) -> float:
    """Return the requests per second that a server answers with 200."""
    more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    requests = cycle(
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{more}\r\n".encode() for path in paths
    )
    loop = asyncio.get_running_loop()
    opened = [
        await loop.create_connection(lambda: _Connection(requests), "127.0.0.1", port)
        for _ in range(CONNECTIONS)
    ]
    begin = time.perf_counter()
    await asyncio.sleep(SECONDS)
    seconds = time.perf_counter() - begin
    for transport, _ in opened:
        transport.abort()
    return sum(connection.answered for _, connection in opened) / seconds
