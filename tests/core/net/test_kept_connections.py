"""POST requests over kept connections, which take a shorter way than the first one."""

import asyncio
import re
from datetime import timedelta
from ipaddress import ip_network

import aiohttp
import pytest

from tocsin import Misconfigured, TryLater

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


class Server:
    """Records requests by connection, and gives each request its answer; None closes instead."""

    def __init__(self, answers):
        self.answers = list(answers)
        self.connections = []

    async def connected(self, reader, writer):
        requests = []
        self.connections.append(requests)
        while (answer := await self.read(reader, requests)) is not None:
            writer.write(answer)
        writer.close()

    async def read(self, reader, requests):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        requests.append(head + await reader.readexactly(int(length[1]) if length else 0))
        return self.answers.pop(0)

    @property
    def requests(self):
        """The number of requests that each connection got."""
        return [len(requests) for requests in self.connections]


@pytest.fixture
async def serve():
    started = []

    async def start(*answers):
        server = Server(answers)
        listening = await asyncio.start_server(server.connected, "127.0.0.1", 0)
        started.append(listening)
        return server, f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/hook?a=%20b"

    yield start
    for listening in started:
        listening.close()


@pytest.fixture
def client(make_client):
    return make_client(allow_networks=[ip_network("127.0.0.1/32")])


@pytest.fixture
def requested(monkeypatch):
    """Requests that took the general way."""
    made = []
    request = aiohttp.ClientSession.request

    def recorded(self, method, *args, **options):
        made.append(method)
        return request(self, method, *args, **options)

    monkeypatch.setattr(aiohttp.ClientSession, "request", recorded)
    return made


def _fields(request):
    head, _, body = request.partition(b"\r\n\r\n")
    line, *fields = head.split(b"\r\n")
    names = (field.partition(b": ") for field in fields)
    return line, sorted((name.lower(), value) for name, _, value in names), body


async def test_a_kept_connection_gets_the_same_request_by_the_short_way(client, serve, requested):
    server, url = await serve(OK, OK)
    given = {"content-type": "application/json", "USER-AGENT": "mine", "X-Key": "a"}
    first = await client.request("POST", url, headers=given, content=b"{}")
    second = await client.request("POST", url, headers=given, content=b"{}")
    assert requested == ["POST"]
    assert (first.status, first.body) == (second.status, second.body) == (200, b"ok")
    assert server.requests == [2]
    [[one, other]] = server.connections
    assert _fields(one) == _fields(other)
    assert one.startswith(b"POST /hook?a=%20b HTTP/1.1\r\n")


async def test_content_without_a_type_is_sent_alike(client, serve):
    server, url = await serve(NO_CONTENT, NO_CONTENT)
    for _ in range(2):
        assert (await client.request("POST", url, content=b"x")).body == b""
    [[one, other]] = server.connections
    assert _fields(one) == _fields(other)


@pytest.mark.parametrize(
    "options",
    [
        {"content": b"x" * 65_537},
        {"content": b"{}", "headers": {"Content-Encoding": "identity"}},
        {"content": b"{}", "headers": {"EXPECT": "nothing"}},
        {"content": None},
    ],
)
async def test_other_requests_take_the_general_way(client, serve, requested, options):
    _, url = await serve(OK, OK)
    await client.request("POST", url, content=b"{}")
    await client.request("POST", url, **options)
    assert requested == ["POST", "POST"]


async def test_headers_cannot_be_smuggled_into_a_kept_connection(client, serve):
    server, url = await serve(OK)
    await client.request("POST", url, content=b"{}")
    for name, value in (("x", "a\r\nx-evil: 1"), ("x\r\nx-evil", "a"), ("x", "a\0")):
        with pytest.raises(ValueError, match="header injection"):
            await client.request("POST", url, headers={name: value}, content=b"{}")
    assert server.requests == [1]


async def test_an_unsolicited_response_is_no_answer_to_the_next_request(client, serve):
    server, url = await serve(OK + OK, NO_CONTENT)
    await client.request("POST", url, content=b"1")
    await asyncio.sleep(0.01)
    assert (await client.request("POST", url, content=b"2")).status == 204
    assert server.requests == [1, 1]


async def test_interim_responses_are_skipped(client, serve):
    server, url = await serve(OK, b"HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n" + OK)
    await client.request("POST", url, content=b"1")
    assert (await client.request("POST", url, content=b"2")).status == 200
    assert server.requests == [2]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "connection reset"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\nhalf", "timeout"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "the response is not HTTP"),
        (b"HTTP/1.1 103 Early Hints\r\n\r\n" * 40, "the response is not HTTP"),
    ],
)
async def test_a_kept_connection_that_fails_is_not_kept_and_nothing_is_sent_again(
    client, serve, answer, reason
):
    server, url = await serve(OK, answer, OK)
    await client.request("POST", url, content=b"1")
    with pytest.raises(TryLater, match=reason) as caught:
        await client.request("POST", url, content=b"2", timeout=timedelta(seconds=0.2))
    assert caught.value.__suppress_context__
    assert server.requests == [2]
    assert (await client.request("POST", url, content=b"3")).status == 200
    assert server.requests == [2, 1]


async def test_a_body_that_is_cut_ends_its_connection(client, serve):
    long = b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n" + b"a" * 100_000
    server, url = await serve(OK, long, OK)
    await client.request("POST", url, content=b"1")
    cut = await client.request("POST", url, content=b"2", limit=1000)
    assert (cut.truncated, cut.body) == (True, b"a" * 1000)
    assert (await client.request("POST", url, content=b"3")).body == b"ok"
    assert server.requests == [2, 1]


async def test_a_request_that_is_abandoned_ends_its_connection(client, serve):
    server, url = await serve(OK, b"", OK)
    await client.request("POST", url, content=b"1")
    with pytest.raises(TryLater, match="timeout"):
        await client.request("POST", url, content=b"2", timeout=timedelta(milliseconds=50))
    assert (await client.request("POST", url, content=b"3")).status == 200
    assert server.requests == [2, 1]


async def test_connections_are_kept_for_one_policy_alone(make_client, client, serve):
    _, url = await serve(OK)
    await client.request("POST", url, content=b"1")
    with pytest.raises(Misconfigured):
        await make_client().request("POST", url, content=b"2")
