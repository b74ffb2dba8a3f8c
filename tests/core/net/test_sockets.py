"""Connections for what is not HTTP: as guarded as those of the HTTP client."""

from __future__ import annotations

import asyncio
import ssl
from datetime import timedelta
from ipaddress import ip_network

import pytest

from ports import free_port
from tocsin import Misconfigured, OperatorError, TryLater
from tocsin.net import open_sockets

LOOPBACK = (ip_network("127.0.0.0/8"),)
ELSEWHERE = (ip_network("10.99.0.0/16"),)
PUBLIC = "93.184.216.34"  # never connected to: whatever is to be refused is refused before
REFUSED = "is not allowed"


async def test_what_is_allowed_is_connected_to(listener):
    sockets = open_sockets(allow_networks=LOOPBACK)
    for plain in (True, False):
        with await sockets.connect("127.0.0.1", listener.port, plain=plain) as connection:
            assert connection.getpeername() == ("127.0.0.1", listener.port)
            assert connection.gettimeout() == 0  # it does not block


async def test_a_host_of_the_operators_own_may_be_private(listener):
    sockets = open_sockets(allow_hosts=["127.0.0.1"])
    (await sockets.connect("127.0.0.1", listener.port, plain=True)).close()


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "0.0.0.0",
        "::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "169.254.169.254",
        "fd00:ec2::254",
        "10.0.0.1",
        "100.64.0.1",
        "224.0.0.1",
        "private.example",
        "mixed.example",
        "LOCALHOST",
    ],
)
async def test_what_is_not_allowed_is_not_even_tried(host, dns, connects):
    dns["private.example"] = [["192.168.7.7"]]
    dns["mixed.example"] = [[PUBLIC, "127.0.0.1"]]
    dns["localhost"] = [["127.0.0.1"]]
    with pytest.raises(Misconfigured, match=REFUSED):
        await open_sockets(allow_networks=ELSEWHERE).connect(host, 25)
    assert connects == []


@pytest.mark.parametrize(
    "host", ["127.1", "0x7f.1", "2130706433", "a b", "127.0.0.1%lo", "", "a@b"]
)
async def test_what_only_some_resolvers_take_for_an_address_is_refused(host, dns, connects):
    with pytest.raises(Misconfigured, match="neither a valid name nor an IP address"):
        await open_sockets(allow_networks=LOOPBACK).connect(host, 25)
    assert (connects, dns.asked) == ([], [])


@pytest.mark.parametrize("port", [0, -1, 65_536])
async def test_a_number_that_is_no_port_is_refused(port, connects):
    with pytest.raises(Misconfigured, match="not a port number"):
        await open_sockets(allow_networks=LOOPBACK).connect("127.0.0.1", port)
    assert connects == []


@pytest.mark.parametrize("networks", [(), ELSEWHERE])
async def test_without_tls_public_addresses_are_not_reached(networks, dns, connects):
    dns["mail.example"] = [[PUBLIC]]
    for host in (PUBLIC, "mail.example"):
        with pytest.raises(Misconfigured, match="without TLS"):
            await open_sockets(allow_networks=networks).connect(host, 25, plain=True)
    assert connects == []


async def test_the_next_address_is_tried_where_one_does_not_answer(listener, dns):
    dns["mail.example"] = [["::1", "127.0.0.1"]]  # nothing listens on that port at the first
    networks = (*LOOPBACK, ip_network("::1/128"))
    sockets = open_sockets(allow_networks=networks)
    with await sockets.connect("mail.example", listener.port) as connection:
        assert connection.getpeername()[0] == "127.0.0.1"


async def test_a_server_that_is_away_passes(dns, hanging):
    dns |= {"nowhere.example": [[]], "hangs.example": [hanging]}
    sockets = open_sockets(allow_networks=LOOPBACK)
    with pytest.raises(TryLater, match="cannot connect"):
        await sockets.connect("127.0.0.1", free_port())
    with pytest.raises(TryLater, match="name not found"):
        await sockets.connect("nowhere.example", 25)
    with pytest.raises(TryLater, match="port 25: timeout"):
        await sockets.connect("hangs.example", 25, timeout=timedelta(milliseconds=20))


async def _shake_hands(sockets, port, name):
    connection = await sockets.connect("127.0.0.1", port)
    _, writer = await asyncio.open_connection(
        sock=connection, ssl=sockets.tls, server_hostname=name
    )
    writer.close()
    await writer.wait_closed()


async def test_certificates_and_names_are_verified(authority, stranger):
    server = await asyncio.start_server(
        lambda _reader, writer: writer.close(),
        "127.0.0.1",
        0,
        ssl=authority.server("127.0.0.1", "mail.example"),
    )
    port = server.sockets[0].getsockname()[1]
    trusting = open_sockets(allow_networks=LOOPBACK, ca_file=authority.file)
    await _shake_hands(trusting, port, "mail.example")
    for sockets, name in (
        (trusting, "other.example"),
        (open_sockets(allow_networks=LOOPBACK, ca_file=stranger.file), "mail.example"),
        (open_sockets(allow_networks=LOOPBACK), "mail.example"),
    ):
        with pytest.raises(ssl.SSLCertVerificationError):
            await _shake_hands(sockets, port, name)
    server.close()
    await server.wait_closed()


def test_certificates_are_verified_also_where_nothing_is_configured():
    assert open_sockets().tls.verify_mode == ssl.CERT_REQUIRED
    assert open_sockets().tls.check_hostname


def test_a_file_that_does_not_serve_is_named_at_once(tmp_path):
    with pytest.raises(OperatorError, match="ca_file"):
        open_sockets(ca_file=str(tmp_path / "missing.pem"))
    with pytest.raises(OperatorError, match="client_certificate is missing"):
        open_sockets(client_key=str(tmp_path / "key.pem"))
