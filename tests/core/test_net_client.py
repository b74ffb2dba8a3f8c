"""The guarded client against real servers on loopback; only what DNS answers is made up."""

import asyncio
import gzip
import re
import socket
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address, ip_network

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from yarl import URL

from tocsin import Refused, TryLater
from tocsin.net import open_client
from tocsin.net.addresses import Policy
from tocsin.net.guard import BlockedError, GuardedSockets
from tocsin.net.urls import refusal

LOOPBACK = (ip_network("127.0.0.1/32"),)
EVERYWHERE = (ip_network("0.0.0.0/0"), ip_network("::/0"))
PUBLIC = "93.184.216.34"  # never connected to: it only stands beside an address that is refused


@pytest.fixture
async def client():
    client = open_client(allow_networks=LOOPBACK)
    yield client
    await client.close()


@asynccontextmanager
async def opened(**allowed):
    client = open_client(**allowed)
    try:
        yield client
    finally:
        await client.close()


class Listener:
    """Counts connections, on every address of this machine; each gets `answer` and is closed."""

    connections = 0
    requests = b""

    def __init__(self, answer=b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"):
        self.answer = answer

    async def _connected(self, reader, writer):
        self.connections += 1
        self.requests += await reader.readuntil(b"\r\n\r\n")
        writer.write(self.answer)
        await writer.drain()
        writer.close()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._connected, None, 0)
        sockets = self._server.sockets
        families = {socket.AF_INET: 0, socket.AF_INET6: 0}
        families.update({each.family: each.getsockname()[1] for each in sockets})
        self.port = families[socket.AF_INET]
        self.port6 = families[socket.AF_INET6]
        return self

    async def __aexit__(self, *_):
        self._server.close()
        await self._server.wait_closed()


@pytest.fixture
async def listener():
    async with Listener() as listener:
        yield listener


@pytest.fixture
def dns(monkeypatch):
    """Made-up names, each with its answers: one for each look-up, the last for all others."""
    names: dict[str, list[list[str]]] = {}
    system = socket.getaddrinfo

    def getaddrinfo(host, port, *args, **kwargs):
        if host not in names:
            return system(host, port, *args, **kwargs)
        answers = names[host][0] if len(names[host]) == 1 else names[host].pop(0)
        return [_address_info(answer, port) for answer in answers]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return names


def _address_info(address, port):
    if ip_address(address).version == 4:
        return socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)
    return socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, port, 0, 0)


# --- what may be reached


async def test_an_allowed_network_is_reached(client, listener):
    response = await client.request("GET", f"http://127.0.0.1:{listener.port}/")
    assert (response.status, response.body, response.truncated) == (200, b"ok", False)
    assert listener.connections == 1


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.255.255.254",
        "0.0.0.0",
        "0",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "localhost",
        "LOCALHOST.",
        "①②⑦.⓪.⓪.①",
        "127。0。0。1",
        "example.com@127.0.0.1",
        "127.0.0.1%00.example.com",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[::7f00:1]",
    ],
)
async def test_no_spelling_of_loopback_is_connected_to(listener, dns, scheme, host):
    dns["localhost."] = [["127.0.0.1"]]
    async with opened() as client:
        with pytest.raises(Refused):
            await client.request("POST", f"{scheme}://{host}:{listener.port}/", content=b"x")
    assert listener.connections == 0


@pytest.mark.parametrize("host", ["[::1]", "[::]", "ip6-loopback.example"])
async def test_no_spelling_of_ipv6_loopback_is_connected_to(listener, dns, host):
    dns["ip6-loopback.example"] = [["::1"]]
    async with opened() as client:
        with pytest.raises(Refused):
            await client.request("GET", f"https://{host}:{listener.port6}/")
    assert listener.connections == 0


@pytest.mark.parametrize("host", ["foo.localhost", "localhost.localdomain", "127.0.0.1.nip.io"])
async def test_a_name_is_judged_by_its_addresses(listener, dns, host):
    dns[host] = [["127.0.0.1"]]
    async with opened() as client:
        with pytest.raises(Refused):
            await client.request("GET", f"https://{host}:{listener.port}/")
    assert listener.connections == 0


@pytest.mark.parametrize(
    "answers",
    [[PUBLIC, "127.0.0.1"], ["127.0.0.1", PUBLIC], [PUBLIC, "::1"], ["2606:4700::1", "0.0.0.0"]],
)
async def test_one_bad_address_among_good_ones_refuses_the_name(listener, dns, answers):
    dns["mixed.example"] = [answers]
    async with opened() as client:
        with pytest.raises(Refused):
            await client.request("GET", f"https://mixed.example:{listener.port}/")
    assert listener.connections == 0


async def test_a_name_that_is_bound_anew_is_refused_at_the_next_connection(client, listener, dns):
    dns["rebinding.example"] = [["127.0.0.1"], ["127.0.0.2"]]
    url = f"http://rebinding.example:{listener.port}/"
    await client.request("GET", url)
    with pytest.raises(Refused):
        await client.request("GET", url)
    assert listener.connections == 1


async def test_the_address_that_was_judged_is_the_one_connected_to(client, listener, dns):
    dns["rebinding.example"] = [["127.0.0.1"], ["127.0.0.2"], ["127.0.0.2"]]
    await client.request("GET", f"http://rebinding.example:{listener.port}/")
    assert len(dns["rebinding.example"]) == 2, "one look-up for one connection"


async def test_metadata_services_are_refused_although_everything_is_allowed(dns):
    dns["metadata.google.internal"] = [["169.254.169.254"]]
    async with opened(
        allow_networks=EVERYWHERE, allow_hosts=["metadata.google.internal", "168.63.129.16"]
    ) as client:
        for host in ("metadata.google.internal", "168.63.129.16", "[::ffff:169.254.169.254]"):
            with pytest.raises(Refused):
                await client.request("GET", f"http://{host}/computeMetadata/v1/")


async def test_plain_http_reaches_public_addresses_of_no_name(listener, dns):
    dns["plain.example"] = [[PUBLIC]]
    async with opened(allow_networks=LOOPBACK, allow_hosts=["plain.example"]) as client:
        with pytest.raises(Refused, match="plain http"):
            await client.request("GET", "http://plain.example/")


async def test_an_allowed_host_may_be_private_and_others_at_its_address_may_not(listener, dns):
    dns["siem.example"] = dns["other.example"] = [["127.0.0.1"]]
    async with opened(allow_hosts=["SIEM.example"]) as client:
        url = f"http://siem.example:{listener.port}/"
        assert (await client.request("GET", url)).status == 200
        with pytest.raises(Refused):
            await client.request("GET", f"http://other.example:{listener.port}/")
        with pytest.raises(Refused):
            await client.request("GET", f"http://127.0.0.1:{listener.port}/")
    assert listener.connections == 1


@pytest.mark.parametrize(
    ("allowed", "host"),
    [("BÜCHER.example", "xn--bcher-kva.example"), ("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")],
)
async def test_an_allowed_host_is_known_in_every_spelling(listener, dns, allowed, host):
    dns["xn--bcher-kva.example"] = [["127.0.0.1"]]
    port = listener.port6 if ":" in host else listener.port
    async with opened(allow_hosts=[allowed]) as client:
        assert (await client.request("GET", f"http://{host}:{port}/")).status == 200


async def test_a_refusal_is_the_same_for_open_and_closed_ports(listener, unused_tcp_port):
    texts = set()
    async with opened() as client:
        for port in (listener.port, unused_tcp_port):
            with pytest.raises(Refused) as caught:
                await client.request("GET", f"https://localhost:{port}/hooks/TOKEN")
            texts.add(str(caught.value))
    assert texts == {
        refusal(URL("https://localhost/")),
    }


@pytest.mark.parametrize(
    "address",
    [
        (socket.AF_INET, ("10.0.0.1", 443)),
        (socket.AF_INET, ("localhost", 443)),
        (socket.AF_INET, ("", 443)),
        (socket.AF_INET, (b"\x7f\x00\x00\x01", 443)),
        (socket.AF_INET6, ("::1", 443, 0, 0)),
        (socket.AF_INET6, ("2606:4700::1", 443, 0, 2)),
        (socket.AF_INET6, ("fe80::1%2", 443, 0, 0)),
        (socket.AF_UNIX, "/run/docker.sock"),
    ],
)
def test_the_last_line_makes_no_socket_for_what_it_cannot_judge_well(address):
    family, sockaddr = address
    with pytest.raises(BlockedError):
        GuardedSockets(Policy(public=True))((family, socket.SOCK_STREAM, 6, "", sockaddr))


async def test_the_last_line_holds_although_the_judgement_of_literals_fails(listener, monkeypatch):
    monkeypatch.setattr("tocsin.net.client.literal_address", lambda host: None)
    async with opened() as client:
        with pytest.raises(Refused):
            await client.request("GET", f"https://127.0.0.1:{listener.port}/")
        with pytest.raises(Refused):
            await client.request("GET", f"https://[::1]:{listener.port6}/")
    assert listener.connections == 0


async def test_proxies_of_the_environment_are_not_used(
    client, listener, monkeypatch, aiohttp_server
):
    server = await _serve(aiohttp_server, lambda request: web.Response(text="direct"))
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{listener.port}")
    response = await client.request("GET", _url(server))
    assert response.body == b"direct"
    assert listener.connections == 0


# --- what is sent and what comes back


async def _serve(aiohttp_server, answer):
    async def handle(request):
        result = answer(request)
        return await result if asyncio.iscoroutine(result) else result

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", handle)
    return await aiohttp_server(application)


def _url(server):
    return str(server.make_url("/"))


async def test_what_is_sent_is_exactly_what_was_given(client, aiohttp_server):
    seen = []

    async def answer(request):
        seen.append((request.method, dict(request.headers), await request.read()))
        return web.Response(status=202, headers={"X-Request-Id": "7"})

    server = await _serve(aiohttp_server, answer)
    response = await client.request(
        "PUT", _url(server), headers={"X-Key": "value"}, content=b"\x00body"
    )
    [(method, headers, body)] = seen
    assert (method, body) == ("PUT", b"\x00body")
    assert headers["X-Key"] == "value"
    assert headers["Accept-Encoding"] == "identity"
    assert headers["User-Agent"].startswith("Tocsin/")
    assert headers["User-Agent"].count("/") == 1
    assert response.status == 202
    assert response.headers["x-request-id"] == "7"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_answers_and_are_not_followed(client, listener, aiohttp_server, status):
    headers = {"Location": f"http://127.0.0.1:{listener.port}/", "Refresh": "0; url=/"}
    server = await _serve(
        aiohttp_server, lambda request: web.Response(status=status, headers=headers)
    )
    response = await client.request("POST", _url(server), content=b"secret")
    assert response.status == status
    assert listener.connections == 0


async def test_cookies_are_not_kept(client, aiohttp_server, dns):
    dns["siem.example"] = [["127.0.0.1"]]
    cookies = []

    def answer(request):
        cookies.append(request.headers.get("Cookie"))
        return web.Response(headers={"Set-Cookie": "session=1"})

    server = await _serve(aiohttp_server, answer)
    await client.request("GET", f"http://siem.example:{server.port}/")
    await client.request("GET", f"http://siem.example:{server.port}/")
    assert cookies == [None, None]


async def _endless(request):
    response = web.StreamResponse()
    await response.prepare(request)
    try:
        while True:
            await response.write(b"x" * 65_536)
    except ConnectionError:
        return response


async def test_a_body_without_end_is_cut(client, aiohttp_server):
    server = await _serve(aiohttp_server, _endless)
    response = await client.request("GET", _url(server), limit=1000)
    assert response.body == b"x" * 1000
    assert response.truncated


async def test_the_rest_of_a_body_that_was_cut_is_no_part_of_the_next_answer(
    client, aiohttp_server
):
    server = await _serve(
        aiohttp_server, lambda request: web.Response(body=request.path[1:].encode() * 100_000)
    )
    for word in (b"a", b"b"):
        response = await client.request("GET", _url(server) + word.decode(), limit=1000)
        assert response.body == word * 1000


@pytest.mark.parametrize(
    ("size", "truncated"), [(0, False), (999, False), (1000, False), (1001, True)]
)
async def test_a_body_is_cut_only_beyond_the_limit(client, aiohttp_server, size, truncated):
    server = await _serve(aiohttp_server, lambda request: web.Response(body=b"x" * size))
    response = await client.request("GET", _url(server), limit=1000)
    assert response.truncated is (size > 1000)
    assert len(response.body) == min(size, 1000)


async def test_a_compressed_body_is_not_inflated(client, aiohttp_server):
    bomb = gzip.compress(b"\x00" * 10_000_000)
    server = await _serve(
        aiohttp_server,
        lambda request: web.Response(body=bomb, headers={"Content-Encoding": "gzip"}),
    )
    response = await client.request("GET", _url(server), limit=100_000)
    assert response.body == bomb


# --- what passes by itself


async def _reason(client, url, **options):
    with pytest.raises(TryLater) as caught:
        await client.request("GET", url, **options)
    return re.sub(r", port \d+", "", str(caught.value))


async def _slow(request):
    await asyncio.sleep(30)


async def _drip(request):
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(300):
        await response.write(b"x")
        await asyncio.sleep(0.1)


@pytest.mark.parametrize("answer", [_slow, _drip])
async def test_a_slow_server_is_a_time_out(client, aiohttp_server, answer):
    server = await _serve(aiohttp_server, answer)
    reason = await _reason(client, _url(server), timeout=timedelta(milliseconds=200))
    assert reason == "127.0.0.1: time-out"


async def test_a_server_that_never_reads_is_a_time_out(client):
    held = []
    server = await asyncio.start_server(lambda *streams: held.append(streams), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    with pytest.raises(TryLater, match="time-out"):
        await client.request("POST", url, content=b"x" * 900_000, timeout=timedelta(seconds=0.2))
    for _, writer in held:
        writer.close()
    server.close()


async def test_a_closed_port_cannot_be_connected_to(client, unused_tcp_port):
    assert await _reason(client, f"http://127.0.0.1:{unused_tcp_port}/") == (
        "127.0.0.1: cannot connect"
    )


async def test_a_name_without_an_address_is_not_found(client):
    assert await _reason(client, "https://nothing.invalid/hooks/TOKEN") == (
        "nothing.invalid: name not found"
    )


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"", "connection reset"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", "connection reset"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "the answer is not HTTP"),
    ],
)
async def test_a_server_that_breaks_off_or_speaks_otherwise(client, answer, reason):
    async with Listener(answer) as listener:
        url = f"http://127.0.0.1:{listener.port}/"
        assert await _reason(client, url) == f"127.0.0.1: {reason}"


async def test_an_error_keeps_no_trace_of_the_url(client, unused_tcp_port):
    with pytest.raises(TryLater) as caught:
        await client.request("GET", f"http://127.0.0.1:{unused_tcp_port}/services/TOKEN")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.fixture
def self_signed(tmp_path):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "server.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


async def test_a_certificate_that_nobody_vouches_for_is_not_accepted(
    client, aiohttp_server, self_signed
):
    server = await aiohttp_server(web.Application(), ssl=self_signed)
    url = f"https://127.0.0.1:{server.port}/"
    assert (
        await _reason(client, url)
        == "127.0.0.1: TLS certificate not valid (self-signed certificate)"
    )


async def test_a_server_without_tls_fails_the_handshake(client, aiohttp_server):
    server = await aiohttp_server(web.Application())
    url = f"https://127.0.0.1:{server.port}/"
    assert await _reason(client, url) == "127.0.0.1: TLS handshake failed"
