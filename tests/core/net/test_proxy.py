"""A proxy that the operator names, against a real one on loopback."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from ipaddress import ip_network

import pytest
from aiohttp import web

from tocsin import Misconfigured, OperatorError, TryLater

LOOPBACK = (ip_network("127.0.0.1/32"),)


class Proxy:
    """An HTTP proxy, by CONNECT and by forwarding; every name leads to loopback."""

    def __init__(self, authorization=None):
        self.heads = []
        self._authorization = authorization
        self._tunnels = []

    async def start(self):
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def stop(self):
        self._server.close()
        await asyncio.gather(*self._tunnels)
        await self._server.wait_closed()

    async def _connected(self, reader, writer):
        self._tunnels.append(asyncio.current_task())
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head.decode())
        method, target, _ = head.decode().split(" ", 2)
        if (
            self._authorization
            and f"Proxy-Authorization: {self._authorization}" not in head.decode()
        ):
            await _send(writer, b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
        elif method == "CONNECT":
            onward = await asyncio.open_connection("127.0.0.1", target.rpartition(":")[2])
            await _send(writer, b"HTTP/1.1 200 Connected\r\n\r\n", close=False)
            await asyncio.gather(_pump(reader, onward[1]), _pump(onward[0], writer))
        else:
            port = target.split("/")[2].rpartition(":")[2]
            onward = await asyncio.open_connection("127.0.0.1", port)
            onward[1].write(head)
            await asyncio.gather(_pump(reader, onward[1]), _pump(onward[0], writer))


async def _send(writer, data, *, close=True):
    writer.write(data)
    await writer.drain()
    if close:
        writer.close()


async def _pump(reader, writer):
    try:
        while data := await reader.read(65_536):
            await _send(writer, data, close=False)
    except ConnectionError:
        pass
    finally:
        writer.close()


@pytest.fixture
async def make_proxy():
    proxies = []

    async def make(**options):
        proxies.append(await Proxy(**options).start())
        return proxies[-1]

    yield make
    for proxy in proxies:
        await proxy.stop()


@pytest.fixture
async def proxy(make_proxy):
    return await make_proxy()


@pytest.fixture
async def serve(aiohttp_server):
    """Serve what repeats the request, over TLS if there is a context; return the port."""

    async def answer(request):
        lines = [f"{name}: {value}" for name, value in request.headers.items()]
        return web.Response(text="\n".join([*lines, await request.text()]))

    async def serve(context=None):
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", answer)
        return (await aiohttp_server(application, ssl=context)).port

    return serve


async def test_https_goes_through_a_tunnel_to_a_name_that_the_proxy_resolves(
    make_client, proxy, serve, authority, dns
):
    port = await serve(authority.server("receiver.example"))
    client = make_client(proxy=proxy.url, ca_file=authority.file)
    dns.asked.clear()
    response = await client.request("POST", f"https://receiver.example:{port}/", content=b"body")
    assert response.body.endswith(b"\nbody")
    assert proxy.heads[0].startswith(f"CONNECT receiver.example:{port} HTTP/1.1\r\n")
    assert "receiver.example" not in dns.asked


async def test_the_certificate_is_the_receivers_and_judged_here(
    make_client, proxy, serve, authority, stranger
):
    port = await serve(stranger.server("receiver.example"))
    client = make_client(proxy=proxy.url, ca_file=authority.file)
    with pytest.raises(TryLater, match=r"^receiver\.example, .*TLS certificate not valid"):
        await client.request("GET", f"https://receiver.example:{port}/")


async def test_plain_http_is_forwarded(make_client, proxy, serve):
    port = await serve()
    client = make_client(proxy=proxy.url, allow_networks=LOOPBACK)
    response = await client.request("POST", f"http://inside.example:{port}/path", content=b"body")
    assert response.body.endswith(b"\nbody")
    assert proxy.heads[0].startswith(f"POST http://inside.example:{port}/path HTTP/1.1\r\n")


@pytest.mark.parametrize("scheme", ["https", "http"])
async def test_credentials_are_for_the_proxy(make_client, make_proxy, serve, authority, scheme):
    basic = "Basic " + b64encode(b"tocsin:PASS@WORD").decode()
    proxy = await make_proxy(authorization=basic)
    port = await serve(authority.server("receiver.example") if scheme == "https" else None)
    client = make_client(
        proxy=proxy.url.replace("//", "//tocsin:PASS%40WORD@"),
        ca_file=authority.file,
        allow_networks=LOOPBACK,
    )
    for _ in range(2):
        response = await client.request("GET", f"{scheme}://receiver.example:{port}/")
        assert response.status == 200
    assert b"\nAuthorization" not in response.body


async def test_a_tunnel_shows_the_receiver_no_credentials_of_the_proxy(
    make_client, proxy, serve, authority
):
    port = await serve(authority.server("receiver.example"))
    client = make_client(
        proxy=proxy.url.replace("//", "//tocsin:PASSWORD@"), ca_file=authority.file
    )
    response = await client.request("GET", f"https://receiver.example:{port}/")
    assert b"Proxy-Authorization" not in response.body


async def test_wrong_credentials_for_the_proxy_are_told_without_them(make_client, make_proxy):
    proxy = await make_proxy(authorization="Basic other")
    client = make_client(proxy=proxy.url.replace("//", "//tocsin:PASSWORD@"))
    with pytest.raises(TryLater) as caught:
        await client.request("GET", "https://receiver.example/")
    assert str(caught.value) == (
        f"the proxy 127.0.0.1, port {proxy.port}: it refused the connection (status 407)"
    )
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/",
        "https://10.0.0.1/",
        "https://169.254.169.254/",
        "https://[::ffff:127.0.0.1]/",
        "https://127.1/",
        "https://user:password@receiver.example/",
        "http://plain.example/",
        "http://1.1.1.1/",
    ],
)
async def test_what_a_url_spells_is_judged_although_there_is_a_proxy(make_client, proxy, url):
    client = make_client(proxy=proxy.url)
    for refused in (client.vet_url, lambda url: client.request("GET", url)):
        with pytest.raises(Misconfigured):
            await refused(url)
    assert proxy.heads == []


async def test_names_are_vetted_by_the_proxy_alone(make_client, proxy, dns):
    dns["inside.example"] = [["10.0.0.1"]]
    await make_client(proxy=proxy.url).vet_url("https://inside.example/")
    assert dns.asked == []
    assert proxy.heads == []


async def test_a_proxy_opens_no_way_to_its_own_address(make_client, proxy):
    client = make_client(proxy=proxy.url)
    with pytest.raises(Misconfigured):
        await client.request("GET", f"{proxy.url}/")
    assert proxy.heads == []


@pytest.mark.parametrize("url", ["https://receiver.example/", "http://inside.example/"])
async def test_a_proxy_that_is_not_there_is_named_as_such(make_client, unused_tcp_port, url):
    client = make_client(
        proxy=f"http://tocsin:PASSWORD@127.0.0.1:{unused_tcp_port}", allow_networks=LOOPBACK
    )
    with pytest.raises(TryLater) as caught:
        await client.request("GET", url)
    assert str(caught.value) == f"the proxy 127.0.0.1, port {unused_tcp_port}: cannot connect"


async def test_a_proxy_without_an_address_is_named_as_such(make_client, dns):
    dns["proxy.example"] = [[]]
    client = make_client(proxy="http://proxy.example:3128")
    with pytest.raises(TryLater, match=r"the proxy proxy\.example, port 3128: name not found"):
        await client.request("GET", "https://receiver.example/")


async def test_no_name_of_a_proxy_leads_to_a_metadata_service(make_client, dns, connects):
    dns["proxy.example"] = [["169.254.169.254"]]
    client = make_client(proxy="http://proxy.example:80")
    with pytest.raises(Misconfigured, match=r"the address of proxy\.example"):
        await client.request("GET", "https://receiver.example/")
    assert connects == []


@pytest.mark.parametrize(
    "proxy",
    [
        "proxy.example:3128",
        "https://user:PASSWORD@proxy.example:3128",
        "socks5://user:PASSWORD@proxy.example",
        "http://user:PASSWORD@:3128",
        "http://user:PASSWORD@proxy.example:port",
        "http://user:PASS/WORD@proxy.example:3128",
        "http://user:PASSWORD@proxy.example:3128/path",
        "http://user:PASSWORD@proxy.example:3128?PASSWORD",
        "http://user:PASSWORD@proxy.example:3128#PASSWORD",
        "http://user:PASS WORD@proxy.example:3128",
        "http://user:PASSWORD@127.1:3128",
        "http://user:PASSWORD@169.254.169.254:80",
        "http://user:PASSWORD@ex\u2100mple.com",
    ],
)
def test_what_is_no_proxy_is_refused_without_showing_its_credentials(make_client, proxy):
    with pytest.raises(OperatorError, match=r"^proxy: .*; use http://host:port") as caught:
        make_client(proxy=proxy)
    assert "PASS" not in str(caught.value)
