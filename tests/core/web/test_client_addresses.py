"""Where a request comes from, as declared proxies tell it."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from tocsin.web.client_addresses import ClientAddresses, address_key

ADDRESSES = ClientAddresses([ip_network("10.0.0.0/8")])


def source(forwarded: str, peer: str = "10.0.0.1") -> str:
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    request: web.Request = make_mocked_request("GET", "/", headers=headers)
    return ADDRESSES.find(request.clone(remote=peer))


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        ("", "10.0.0.1"),
        ("192.0.2.7", "192.0.2.7"),
        ("192.0.2.7:51234", "192.0.2.7"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("203.0.113.9, 192.0.2.7", "192.0.2.7"),
        ("192.0.2.7, 10.0.0.2", "192.0.2.7"),
        ("192.0.2.7, nonsense", "10.0.0.1"),
        ("unknown", "10.0.0.1"),
    ],
)
def test_a_declared_proxy_tells_the_address(forwarded, address):
    assert source(forwarded) == address


def test_anyone_else_tells_nothing():
    assert source("192.0.2.7", peer="203.0.113.9") == "203.0.113.9"


def test_an_ipv6_address_is_limited_with_its_site():
    assert address_key("2001:db8:1:2:3:4:5:6") == "2001:db8:1:2::/64"
    assert address_key("192.0.2.7") == "192.0.2.7"
