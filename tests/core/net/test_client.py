"""The guarded client against real servers on loopback; only what DNS answers is made up."""

import asyncio
import gzip
import re
from datetime import timedelta
from ipaddress import ip_network

import pytest
from aiohttp import web

from tocsin import Misconfigured, TryLater

LOOPBACK = (ip_network("127.0.0.1/32"),)
PUBLIC = "93.184.216.34"  # never connected to


@pytest.fixture
def client(make_client):
    return make_client(allow_networks=LOOPBACK)


# --- what may be reached


async def test_an_allowed_network_is_reached(client, listener):
    response = await client.request("GET", f"http://127.0.0.1:{listener.port}/")
    assert (response.status, response.body, response.truncated) == (200, b"ok", False)
    assert listener.connections == 1


async def test_a_url_that_may_be_requested_is_vetted_without_a_connection(client, dns, connects):
    dns["siem.example"] = [["127.0.0.1"]]
    dns["public.example"] = [[PUBLIC, "2606:4700::1111"]]
    for url in ("http://127.0.0.1/", "http://siem.example/", "https://public.example/"):
        await client.vet_url(url)
    assert connects == []
    assert set(dns.asked) == {"siem.example", "public.example"}


async def test_a_name_that_leads_nowhere_yet_is_vetted(client, dns):
    dns["later.example"] = [[]]
    await client.vet_url("https://later.example/")
    await client.vet_url("https://nothing.invalid/")


@pytest.mark.parametrize("answer", [PUBLIC, "10.0.0.1"])
async def test_plain_http_reaches_no_address_that_is_not_allowed(client, dns, connects, answer):
    dns["plain.example"] = [[answer]]
    for refused in (client.vet_url, lambda url: client.request("GET", url)):
        with pytest.raises(Misconfigured, match="plain http"):
            await refused("http://plain.example/")
    assert connects == []


async def test_without_anything_allowed_plain_http_is_refused_before_any_look_up(make_client, dns):
    with pytest.raises(Misconfigured, match="plain http"):
        await make_client().request("GET", "http://plain.example/")
    assert dns.asked == []


async def test_an_allowed_host_may_be_private_and_others_at_its_address_may_not(
    make_client, listener, dns
):
    dns["siem.example"] = dns["other.example"] = [["127.0.0.1"]]
    client = make_client(allow_hosts=["SIEM.example"])
    url = f"http://siem.example:{listener.port}/"
    await client.vet_url(url)
    assert (await client.request("GET", url)).status == 200
    for host in ("other.example", "127.0.0.1"):
        with pytest.raises(Misconfigured):
            await client.request("GET", f"http://{host}:{listener.port}/")
    assert listener.connections == 1


async def test_plain_http_reaches_no_public_address_of_an_allowed_host(make_client, dns):
    dns["siem.example"] = [[PUBLIC]]
    with pytest.raises(Misconfigured, match="plain http"):
        await make_client(allow_hosts=["siem.example"]).request("GET", "http://siem.example/")


async def test_an_own_host_that_is_public_or_tells_secrets_is_refused_without_other_settings(
    make_client,
):
    client = make_client(allow_hosts=[PUBLIC, "169.254.169.254"])
    with pytest.raises(Misconfigured) as caught:
        await client.request("GET", f"http://{PUBLIC}/")
    assert str(caught.value).endswith(
        "plain http:// is allowed only for private addresses, so use https://"
    )
    with pytest.raises(Misconfigured, match=r"is not allowed$"):
        await client.request("GET", "https://169.254.169.254/")


@pytest.mark.parametrize(
    ("allowed", "host"),
    [("BÜCHER.example", "xn--bcher-kva.example"), ("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")],
)
async def test_an_allowed_host_is_known_in_every_spelling(
    make_client, listener, dns, allowed, host
):
    dns["xn--bcher-kva.example"] = [["127.0.0.1"]]
    port = listener.port6 if ":" in host else listener.port
    client = make_client(allow_hosts=[allowed])
    client.check_url(f"http://{host}:{port}/")
    assert (await client.request("GET", f"http://{host}:{port}/")).status == 200


async def test_one_client_may_not_what_another_may(make_client, listener):
    url = f"http://127.0.0.1:{listener.port}/"
    await make_client(allow_networks=LOOPBACK).request("GET", url)
    with pytest.raises(Misconfigured):
        await make_client().request("GET", url)


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
    assert reason == "127.0.0.1: timeout"


async def test_a_server_that_never_reads_is_a_time_out(client):
    held = []
    server = await asyncio.start_server(lambda *streams: held.append(streams), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    with pytest.raises(TryLater, match="timeout"):
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
        (b"SSH-2.0-OpenSSH_9.6\r\n", "the response is not HTTP"),
    ],
)
async def test_a_server_that_breaks_off_or_speaks_otherwise(client, make_listener, answer, reason):
    listener = await make_listener(answer)
    url = f"http://127.0.0.1:{listener.port}/"
    assert await _reason(client, url) == f"127.0.0.1: {reason}"


async def test_an_error_keeps_no_trace_of_the_url(client, unused_tcp_port):
    with pytest.raises(TryLater) as caught:
        await client.request("GET", f"http://127.0.0.1:{unused_tcp_port}/services/TOKEN")
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


async def test_a_server_without_tls_fails_the_handshake(client, aiohttp_server):
    server = await aiohttp_server(web.Application())
    url = f"https://127.0.0.1:{server.port}/"
    assert (await _reason(client, url)).startswith("127.0.0.1: TLS handshake failed (")
