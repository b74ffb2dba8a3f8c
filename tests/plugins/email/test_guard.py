"""No mail goes where the destination may not reach, and nobody even tries."""

from __future__ import annotations

import socket

import pytest

from tocsin import Misconfigured

from .conftest import delivery


@pytest.fixture
def connects(monkeypatch):
    """Every address that the process connects to."""
    addresses, connect = [], socket.socket.connect
    monkeypatch.setattr(
        socket.socket,
        "connect",
        lambda self, address: addresses.append(address) or connect(self, address),
    )
    return addresses


@pytest.mark.parametrize("tls", ["starttls", "implicit", "none"])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "169.254.169.254", "10.0.0.1", "localhost"])
async def test_what_may_not_be_reached_is_not_even_tried(server, make_channel, connects, tls, host):
    channel = make_channel(server, tls=tls, host=host, allow_networks=["10.99.0.0/16"])
    with pytest.raises(Misconfigured, match="is not allowed"):
        await channel.deliver(delivery())
    assert connects == []
    assert server.desk.connections == 0


async def test_without_tls_no_public_server_is_reached(server, make_channel, connects):
    channel = make_channel(server, tls="none", host="93.184.216.34")
    with pytest.raises(Misconfigured, match="without TLS, only these networks"):
        await channel.deliver(delivery())
    assert connects == []
