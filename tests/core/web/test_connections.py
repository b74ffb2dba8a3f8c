"""Connections without a credential: what each one costs, and how many there are."""

from __future__ import annotations

import asyncio
import gzip
import resource
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import StreamReader, web

from api_callers import until
from api_server import PUSH_TOKEN, PUSHED
from tocsin.web import ApiRunner, make_app, server
from tocsin.web.direct_reads import DirectReads

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
CLOSE = GET + b"Connection: close\r\n\r\n"
CHUNKED = b"Host: localhost\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n"
END = b"0\r\n\r\n"


@asynccontextmanager
async def served(api, **limits: int) -> AsyncIterator[Connect]:
    """Serve the API, and yield what connects to it."""
    runner = ApiRunner(make_app(api.services), **limits)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    writers = []

    async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*runner.addresses[0], limit=4_096)
        writers.append(writer)
        return reader, writer

    connect.open = lambda: len(runner.server.connections)
    try:
        yield connect
    finally:
        for writer in writers:
            writer.transport.abort()
        await runner.cleanup()


async def exchange(connect: Connect, sent: bytes) -> bytes:
    """Return what the service answers until it closes the connection."""
    reader, writer = await connect()

    async def send() -> None:
        with suppress(ConnectionError):
            writer.write(sent)
            await writer.drain()

    sending = asyncio.create_task(send())
    answer = b""
    async with asyncio.timeout(5):
        with suppress(ConnectionError):
            while part := await reader.read(65_536):
                answer += part
    await sending
    return answer


def chunked(body: bytes, size: int, extension: bytes = b"") -> bytes:
    parts = (body[start : start + size] for start in range(0, len(body), size))
    return b"".join(b"%x%b\r\n%b\r\n" % (len(part), extension, part) for part in parts) + END


SMALL_CHUNKS = {
    "of one byte": chunked(b"[" * 60_000, 1),
    "of ten bytes": chunked(b"[" * 300_000, 10),
    "with extensions": chunked(b"[" * 100, 1, b";" + b"a" * 7_000),
    "compressed": chunked(zlib.compress(bytes(range(256)) * 200, 0), 1),
}
TARGETS = {
    "a body that nobody reads": b"POST /nowhere HTTP/1.1\r\n",
    "a form": b"POST /oauth/token HTTP/1.1\r\n",
    "a push": b"POST /api/push/%b HTTP/1.1\r\nAuthorization: Bearer %b\r\n"
    % (PUSHED.encode(), PUSH_TOKEN.encode()),
}


@on_sqlite
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("chunks", SMALL_CHUNKS.values(), ids=SMALL_CHUNKS)
async def test_a_body_of_small_chunks_ends_the_connection(api, target, chunks):
    coded = b"Content-Encoding: deflate\r\n" if chunks is SMALL_CHUNKS["compressed"] else b""
    async with served(api) as connect:
        answer = await exchange(connect, target + CHUNKED + coded + b"\r\n" + chunks + CLOSE)
    assert answer.count(b"HTTP/1.1 ") <= 1
    assert b"HTTP/1.1 2" not in answer


@on_sqlite
@pytest.mark.parametrize("target", list(TARGETS.values())[1:], ids=list(TARGETS)[1:])
async def test_the_answer_to_an_unreadable_body_says_that_it_is_the_last(api, target):
    kind = b"json" if b"push" in target else b"x-www-form-urlencoded"
    head = b"Host: localhost\r\nContent-Type: application/%b\r\n" % kind
    coded = b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"
    async with served(api) as connect:
        answer = await exchange(connect, target + head + coded)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"\r\nConnection: close\r\n" in answer


CODINGS = [b"br", b"zstd", b"snappy", b"Compress", b"gzip, gzip", b"gzip\r\nContent-Encoding: gzip"]


@on_sqlite
@pytest.mark.parametrize("coding", CODINGS)
async def test_a_body_in_an_unsupported_coding_is_refused_with_those_that_are(api, coding):
    head = TARGETS["a push"] + b"Host: localhost\r\nContent-Type: application/json\r\n"
    async with served(api) as connect:
        sent = head + b"Content-Encoding: %b\r\nContent-Length: 2\r\n\r\n{}" % coding
        answer = await exchange(connect, sent + CLOSE)
    assert b" 415 Unsupported Media Type\r\n" in answer
    assert b"Use gzip or deflate" in answer


@on_sqlite
async def test_a_form_in_an_unsupported_coding_is_refused_with_those_that_are(api):
    form = b"Host: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    coded = b"Content-Encoding: snappy\r\nContent-Length: 1\r\n\r\na"
    async with served(api) as connect:
        answer = await exchange(connect, TARGETS["a form"] + form + coded + CLOSE)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"Use gzip or deflate" in answer


@on_sqlite
async def test_few_small_chunks_are_parsed(api, monkeypatch):
    parsed = []
    receive = StreamReader.end_http_chunk_receiving
    count = lambda reader: parsed.append(reader) or receive(reader)  # noqa: E731
    monkeypatch.setattr(StreamReader, "end_http_chunk_receiving", count)
    async with served(api) as connect:
        sent = TARGETS["a body that nobody reads"] + CHUNKED + b"\r\n" + SMALL_CHUNKS["of one byte"]
        await exchange(connect, sent)
    assert 500 < len(parsed) < 3_000


@on_sqlite
@pytest.mark.parametrize(
    "coding", [b"", b"Content-Encoding: identity\r\n", b"Content-Encoding: GZIP\r\n"]
)
async def test_chunks_of_forty_bytes_are_read(api, coding):
    body = b'{"external_id": "1", "title": "%b"}' % bytes(range(97, 123)) + b" " * 400_000
    content = gzip.compress(body, 0) if b"GZIP" in coding else body
    async with served(api) as connect:
        sent = TARGETS["a push"] + CHUNKED + coding + b"\r\n" + chunked(content, 40) + CLOSE
        answer = await exchange(connect, sent)
    assert answer.count(b"HTTP/1.1 200 ") == 2


@on_sqlite
@pytest.mark.parametrize("size", [40, 1_000])
async def test_chunks_that_arrive_before_they_are_read_are_kept(api, monkeypatch, size):
    async def read(reader: StreamReader, *arguments) -> bytes:
        await asyncio.sleep(0.01)
        return await read_part(reader, *arguments)

    read_part = StreamReader.readany
    monkeypatch.setattr(StreamReader, "readany", read)
    body = b'{"external_id": "1", "title": "a title"}' + b" " * 400_000
    async with served(api) as connect:
        sent = TARGETS["a push"] + CHUNKED + b"\r\n" + chunked(body, size) + CLOSE
        answer = await exchange(connect, sent)
    assert answer.count(b"HTTP/1.1 200 ") == 2


@on_sqlite
async def test_a_body_of_many_chunks_that_nobody_reads_leaves_the_connection_usable(
    api, monkeypatch
):
    """aiohttp pauses at 2,049 unread chunks, and at their end continues without the parser."""

    async def leave_to_application(*_: object) -> None:
        await asyncio.sleep(0.5)  # until the whole body is there

    monkeypatch.setattr(DirectReads, "_answer", leave_to_application)
    begin, _, end = chunked(b"a" * 16 * 2_049, 16).rpartition(b"10\r\n")
    async with served(api) as connect, asyncio.timeout(5):
        reader, writer = await connect()
        for part in (
            TARGETS["a body that nobody reads"] + CHUNKED + b"\r\n" + begin,
            b"10\r\n" + end,
        ):
            writer.write(part)
            await asyncio.sleep(0.2)
        writer.write(CLOSE)
        answer = await reader.read()
    assert answer.count(b"HTTP/1.1 404 ") == 1
    assert answer.count(b"HTTP/1.1 200 ") == 1


@on_sqlite
@pytest.mark.parametrize("end", [b"\r\n", b""])
async def test_a_header_is_bounded_as_a_whole(api, end):
    fields = b"".join(b"X-%d: %b\r\n" % (number, b"a" * 8_000) for number in range(20))
    async with served(api) as connect:
        assert b" 431 Request Header" in await exchange(connect, GET + fields + end)


@on_sqlite
async def test_a_header_has_a_time_limit(api, monkeypatch):
    monkeypatch.setattr(server, "_KEEPALIVE_SECONDS", 0.1)
    async with served(api) as connect:
        assert await exchange(connect, GET + b"X: a") == b""


@on_sqlite
async def test_requests_on_one_connection_do_not_add_up(api):
    field = b"X: " + b"a" * 6_000 + b"\r\n\r\n"
    async with served(api) as connect:
        answer = await exchange(connect, (GET + field) * 30 + CLOSE)
    assert answer.count(b"HTTP/1.1 200 ") == 31


@on_sqlite
async def test_a_client_that_reads_nothing_is_disconnected(api, monkeypatch):
    monkeypatch.setattr(server, "_SENDING_SECONDS", 0.1)
    async with served(api) as connect:
        _, writer = await connect()
        writer.transport.pause_reading()
        writer.write(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 40)
        await until(lambda: connect.open() == 1)
        async with asyncio.timeout(5):
            await until(lambda: connect.open() == 0)


@on_sqlite
async def test_over_the_limit_the_oldest_connection_that_waits_is_closed(api):
    async with served(api, connections=2) as connect:
        reader, busy = await connect()
        busy.write(TARGETS["a push"] + CHUNKED + b"\r\n1\r\n[\r\n")
        await until(lambda: api.services.push_bodies._all == 1)
        waiting, _ = await connect()
        assert b"HTTP/1.1 200 " in await exchange(connect, CLOSE)
        assert await waiting.read() == b""
        busy.write(b"1\r\n]\r\n" + END)
        assert b"HTTP/1.1 200 " in await reader.readuntil(b"\r\n")


def test_half_of_the_files_are_left_for_the_rest():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1_000, hard))
    try:
        most = server.limit_connections()
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert 500 <= most <= allowed // 2
    assert allowed > 1_000 or hard <= 1_000
