"""A receiver that may do anything to its connections: a real server, on raw sockets."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from end_to_end.service import SECRET
from signatures import verify

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""What a receiver does once it has read a request; the connection is closed where it raises."""

_AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER with no time: closing resets the connection


@dataclass(frozen=True, slots=True)
class Request:
    """What a receiver got."""

    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


class Rogue:
    """Verifies and keeps every request that it reads, and then does what `behave` says."""

    greet: Behaviour | None = None
    """What it does with a new connection, in place of reading a request."""

    def __init__(self, behave: Behaviour, tls: ssl.SSLContext | None = None) -> None:
        self.behave = behave
        self.got: list[Request] = []
        self.connections = 0
        self._tls = tls
        self._conversations: set[asyncio.Task[None]] = set()
        self._port = 0

    async def start(self) -> None:
        """Listen, on the same port as the last time."""
        self._server = await asyncio.start_server(
            self._connected, "127.0.0.1", self._port, ssl=self._tls
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Refuse connections, and end those that there are."""
        self._server.close()
        for conversation in self._conversations:
            conversation.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def ids(self) -> list[str]:
        return [request.id for request in self.got]

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self._port

    def url(self, host: str = "127.0.0.1") -> str:
        return f"{'https' if self._tls else 'http'}://{host}:{self._port}/hook"

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        conversation = asyncio.create_task(self._converse(reader, writer))
        self._conversations.add(conversation)
        conversation.add_done_callback(self._conversations.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if self.greet is not None:
                await self.greet(reader, writer)
            while True:
                self.got.append(await _read(reader))
                await self.behave(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the other side is gone, or we are to be
        finally:
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    fields = (line.split(": ", 1) for line in head.strip().split("\r\n")[1:])
    headers = {name.lower(): value for name, value in fields}
    body = await reader.readexactly(int(headers["content-length"]))
    verify(SECRET, body, headers)
    return Request(headers, body)


@asynccontextmanager
async def receiving(behave: Behaviour, tls: ssl.SSLContext | None = None) -> AsyncIterator[Rogue]:
    """Give a receiver that is listening, and stop it."""
    rogue = Rogue(behave, tls)
    await rogue.start()
    try:
        yield rogue
    finally:
        await rogue.stop()


@contextmanager
def black_hole() -> Iterator[str]:
    """Give a URL to which no connection is refused and none is made: the backlog is full."""
    with socket.socket() as listening, socket.socket() as first, socket.socket() as second:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for filling in (first, second):
            filling.setblocking(False)
            filling.connect_ex(listening.getsockname())
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/hook"


# --- behaviours


def answer(status: int, *fields: str, body: bytes = b"") -> Behaviour:
    """Answer as a good server does, with these header fields."""
    head = (f"HTTP/1.1 {status} So", f"Content-Length: {len(body)}", *fields, "", "")
    return say("\r\n".join(head).encode() + body)


def say(words: bytes) -> Behaviour:
    """Write this, and read on."""

    async def behave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(words)
        await writer.drain()

    return behave


def say_and_close(words: bytes) -> Behaviour:
    """Write this, and end the connection."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await say(words)(reader, writer)
        raise ConnectionError

    return behave


def say_and_reset(words: bytes) -> Behaviour:
    """Write this, let it arrive, and reset the connection."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await say(words)(reader, writer)
        await asyncio.sleep(0.05)
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        writer.transport.abort()
        raise ConnectionError

    return behave


def say_for_ever(words: bytes, again: bytes) -> Behaviour:
    """Write this and then that again and again, as fast as it is read."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await say(words)(reader, writer)
        while True:
            await say(again)(reader, writer)

    return behave


def drip(words: bytes, pause: float = 0.02) -> Behaviour:
    """Write this a byte at a time, and then its last byte for ever."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for byte in words:
            await say(bytes([byte]))(reader, writer)
            await asyncio.sleep(pause)
        while True:
            await say(words[-1:])(reader, writer)
            await asyncio.sleep(pause)

    return behave


async def silence(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Say nothing, and keep the connection."""
    await asyncio.Event().wait()
