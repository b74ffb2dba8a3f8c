"""The list of 52 ways around a guard against server-side request forgery, each one tried.

Most are URLs: refused for the address or the grammar of what they spell, or for what their name
leads to. Each is tried at registration and when it is sent to. 49 to 52 are situations, and tests
of their own.
"""

from __future__ import annotations

import asyncio
import re
import socket
from datetime import timedelta
from ipaddress import ip_network
from typing import NamedTuple

import pytest
from aiohttp import web

from bypasses import HOSTS, NAMES, PUBLIC, SPELLINGS
from cases import try_cases
from tocsin import Misconfigured, TryLater
from tocsin.net.addresses import AddressPolicy
from tocsin.net.connector import BlockedError, GuardedSockets

LOOPBACK = (ip_network("127.0.0.1/32"),)
EVERYWHERE = (ip_network("0.0.0.0/0"), ip_network("::/0"))
# Allowed throughout, so that it is the address that is refused and not plain http as such.
ELSEWHERE = (ip_network("10.99.0.0/16"),)
ADDRESS_WORDS = "is not allowed; add its network to allow_networks"
SPELLING_WORDS = "^the (host in the )?URL "


class Bypass(NamedTuple):
    """A URL, the words that refuse it, and what its name leads to if it has one."""

    url: str
    words: str
    names: dict[str, list[list[str]]]


_SPELLED = [
    *(
        (number, Bypass(f"{scheme}://{host}/latest/meta-data/", ADDRESS_WORDS, {}))
        for number, hosts in HOSTS.items()
        for host in hosts
        for scheme in ("http", "https")
    ),
    *(
        (number, Bypass(url, SPELLING_WORDS, {}))
        for number, urls in SPELLINGS.items()
        for url in dict.fromkeys([*urls, *(url.replace("https:", "http:") for url in urls)])
    ),
]
_NAMED = [
    (number, Bypass(f"{scheme}://{host}/", ADDRESS_WORDS, {host.lower(): [answers]}))
    for number, names in NAMES.items()
    for host, answers in names.items()
    for scheme in ("http", "https")
]


@pytest.fixture
def client(make_client):
    return make_client(allow_networks=ELSEWHERE)


def test_what_a_url_spells_is_refused_without_the_network(client, dns):
    with try_cases() as case:
        for number, bypass in _SPELLED:
            with case(f"{number}: {bypass.url!a}"):
                with pytest.raises(Misconfigured, match=bypass.words):
                    client.check_url(bypass.url)
                assert dns.asked == []


async def test_it_is_refused_at_registration(client, dns, connects):
    with try_cases() as case:
        for number, bypass in _SPELLED + _NAMED:
            with case(f"{number}: {bypass.url!a}"):
                dns.update(bypass.names)
                with pytest.raises(Misconfigured, match=bypass.words):
                    await client.vet_url(bypass.url)
                assert connects == []


async def test_it_is_refused_when_it_is_sent_to(client, dns, connects):
    with try_cases() as case:
        for number, bypass in _SPELLED + _NAMED:
            with case(f"{number}: {bypass.url!a}"):
                dns.update(bypass.names)
                with pytest.raises(Misconfigured, match=bypass.words):
                    await client.request("POST", bypass.url, content=b"x")
                assert connects == []


# --- 49: names that are bound anew


async def test_49_a_name_bound_anew_after_its_registration_is_refused(client, dns, connects):
    dns["rebinding.example"] = [[PUBLIC], ["127.0.0.1"]]
    await client.vet_url("https://rebinding.example/")
    with pytest.raises(Misconfigured, match=ADDRESS_WORDS):
        await client.request("POST", "https://rebinding.example/")
    assert connects == []


async def test_49_a_name_bound_anew_between_two_attempts_is_refused(make_client, listener, dns):
    client = make_client(allow_networks=LOOPBACK)
    dns["rebinding.example"] = [["127.0.0.1"], ["127.0.0.2"]]
    url = f"http://rebinding.example:{listener.port}/"
    await client.request("GET", url)
    with pytest.raises(Misconfigured, match=ADDRESS_WORDS):
        await client.request("GET", url)
    assert listener.connections == 1


async def test_49_the_address_that_was_judged_is_the_one_connected_to(make_client, listener, dns):
    client = make_client(allow_networks=LOOPBACK)
    dns["rebinding.example"] = [["127.0.0.1"], ["127.0.0.2"]]
    await client.request("GET", f"http://rebinding.example:{listener.port}/")
    assert dns.asked == ["rebinding.example"], "one look-up for one connection"


# --- 50: redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("header", ["Location", "Refresh"])
async def test_50_no_redirect_is_followed(make_client, aiohttp_server, connects, status, header):
    async def redirect(request):
        return web.Response(status=status, headers={header: targets[int(request.path[1:])]})

    application = web.Application()
    application.router.add_route("*", "/{path}", redirect)
    server = await aiohttp_server(application)
    urls = [bypass.url for _, bypass in _SPELLED + _NAMED if bypass.url.isprintable()]
    urls += [f"http://127.0.0.1:{server.port + 1}/", "/latest"]
    targets = [url if header == "Location" else f"0; url={url}" for url in urls]
    client = make_client(allow_networks=LOOPBACK)
    connects.clear()
    for number in range(len(targets)):
        url = str(server.make_url(f"/{number}"))
        response = await client.request("POST", url, content=b"secret")
        assert (response.status, response.headers[header]) == (status, targets[number])
    assert set(connects) == {("127.0.0.1", server.port)}


# --- 51: what stands beside this service


@pytest.mark.parametrize(
    ("host", "answers"),
    [
        ("127.0.0.1", []),
        ("tocsin.internal", ["127.0.0.1"]),
        ("172.17.0.1", []),  # a container's gateway, under which the host answers
        ("host.docker.internal", ["172.17.0.1"]),
        ("kubernetes.default.svc.cluster.local", ["10.96.0.1"]),
    ],
)
async def test_51_neither_this_service_nor_its_neighbors_are_reached(
    client, dns, connects, host, answers
):
    dns[host] = [answers]
    url = f"https://{host}:8080/healthz"
    with pytest.raises(Misconfigured, match=ADDRESS_WORDS):
        await client.vet_url(url)
    with pytest.raises(Misconfigured, match=ADDRESS_WORDS):
        await client.request("GET", url)
    assert connects == []


# --- 52: everything else


async def test_52_proxies_of_the_environment_are_not_used(
    make_client, listener, monkeypatch, unused_tcp_port
):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{unused_tcp_port}")
    client = make_client(allow_networks=LOOPBACK)
    response = await client.request("GET", f"http://127.0.0.1:{listener.port}/")
    assert response.body == b"ok"


@pytest.mark.parametrize(
    "url",
    [
        "https://user:PASSWORD@example.com/",
        "https://user:PASSWORD@127.0.0.1:port/",
        "https://user:PASSWORD@ex\u2100mple.com/",
        "https://user:PASS/WORD@127.0.0.1/",
        "https://127.0.0.1/PASSWORD",
        "https://127.0.0.1/?token=PASSWORD",
        "http://example.com/PASSWORD",
    ],
)
async def test_52_what_a_url_keeps_secret_is_not_in_the_error(make_client, url):
    with pytest.raises(Misconfigured) as caught:
        await make_client().request("GET", url)
    assert "PASS" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("port", [22, 25, 80, 443, 6379])
async def test_52_a_port_makes_no_difference(client, connects, port):
    with pytest.raises(Misconfigured) as caught:
        await client.request("GET", f"https://127.0.0.1:{port}/")
    assert str(caught.value) == f"the address of 127.0.0.1 {ADDRESS_WORDS}"
    assert connects == []


async def test_52_an_alias_of_an_internal_name_is_judged_by_its_addresses(client, dns, connects):
    dns["alias.example"] = [["10.0.0.7"]]  # a resolver follows CNAME records itself
    with pytest.raises(Misconfigured, match=ADDRESS_WORDS):
        await client.request("GET", "https://alias.example/")
    assert connects == []


@pytest.mark.parametrize("answer", ["0.0.0.0", "::", "::ffff:0.0.0.0"])
async def test_52_the_unspecified_address_is_refused_as_an_answer(client, dns, connects, answer):
    dns["zero.example"] = [[answer]]
    with pytest.raises(Misconfigured, match=ADDRESS_WORDS):
        await client.request("GET", "https://zero.example/")
    assert connects == []


async def test_52_a_look_up_that_hangs_holds_up_no_registration(client, dns, hanging, monkeypatch):
    monkeypatch.setattr("tocsin.net.client._LOOK_UP_SECONDS", 0.01)
    dns["slow.example"] = [hanging]
    await client.vet_url("https://slow.example/")
    assert not hanging.over.is_set()


async def test_52_a_look_up_that_hangs_ends_with_its_request(client, dns, hanging):
    dns["slow.example"] = [hanging]
    with pytest.raises(TryLater, match=r"slow\.example, port 443: timeout"):
        await client.request("GET", "https://slow.example/", timeout=timedelta(milliseconds=20))


async def test_52_many_look_ups_that_hang_hold_up_no_other_name(
    make_client, listener, dns, hanging
):
    client = make_client(allow_networks=LOOPBACK)
    dns["slow.example"] = [hanging]
    dns["quick.example"] = [["127.0.0.1"]]
    attempts = [
        asyncio.create_task(client.request("GET", "http://slow.example/")) for _ in range(64)
    ]
    await asyncio.to_thread(hanging.begun.wait, 10)
    response = await client.request("GET", f"http://quick.example:{listener.port}/")
    assert response.status == 200
    hanging.over.set()
    failures = await asyncio.gather(*attempts, return_exceptions=True)
    assert dns.asked.count("slow.example") == 1, "they share one look-up"
    assert {str(failure) for failure in failures} == {"slow.example, port 80: name not found"}


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
def test_52_the_last_line_makes_no_socket_for_what_it_cannot_judge_well(address):
    family, sockaddr = address
    with pytest.raises(BlockedError):
        GuardedSockets(AddressPolicy(public=True))((family, socket.SOCK_STREAM, 6, "", sockaddr))


# --- all of them together


def test_every_number_of_the_list_is_tried():
    situations = {int(match[1]) for name in globals() if (match := re.match(r"test_(\d+)_", name))}
    assert set(HOSTS) | set(SPELLINGS) | set(NAMES) | situations == set(range(1, 53))


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
async def test_the_last_line_holds_although_the_judgement_of_literals_fails(
    client, listener, monkeypatch, connects, host
):
    monkeypatch.setattr("tocsin.net.urls.literal_address", lambda host: None)
    port = listener.port6 if ":" in host else listener.port
    with pytest.raises(Misconfigured, match=ADDRESS_WORDS):
        await client.request("GET", f"https://{host}:{port}/")
    assert connects == []


async def test_a_refusal_is_the_same_for_open_and_closed_ports(client, listener, unused_tcp_port):
    texts = set()
    for port in (listener.port, unused_tcp_port):
        with pytest.raises(Misconfigured) as caught:
            await client.request("GET", f"https://localhost:{port}/hooks/TOKEN")
        texts.add(str(caught.value))
    assert texts == {f"the address of localhost {ADDRESS_WORDS}"}


async def test_a_refusal_is_the_same_at_registration_and_at_every_later_time(client, dns):
    dns["inside.example"] = [["10.0.0.1"], ["10.0.0.1"], ["127.0.0.1", PUBLIC]]
    texts = set()
    for refused in (client.vet_url, lambda url: client.request("GET", url)):
        for _ in range(2):
            with pytest.raises(Misconfigured) as caught:
                await refused("https://inside.example/")
            texts.add(str(caught.value))
    assert len(texts) == 1


async def test_metadata_services_are_refused_although_everything_is_allowed(make_client, dns):
    metadata = [host for number in (17, 27, 28, 29, 30, 32, 33, 34) for host in HOSTS[number]]
    dns["metadata.google.internal"] = [["169.254.169.254"]]
    hosts = [*metadata, "metadata.google.internal"]
    names = [host.strip("[]") for host in hosts]
    client = make_client(allow_networks=EVERYWHERE, allow_hosts=names)
    for host in hosts:
        with pytest.raises(Misconfigured):
            await client.vet_url(f"http://{host}/")
        with pytest.raises(Misconfigured):
            await client.request("GET", f"http://{host}/computeMetadata/v1/")
