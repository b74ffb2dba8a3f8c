"""What channels are handed, as their settings have it."""

from __future__ import annotations

import asyncio

import pytest

from tocsin import Misconfigured
from tocsin.clock import SystemClock
from tocsin.hookspecs import NoAttempts
from tocsin.registry import PluginFactory, load_configuration, start_plugins

FILE = """
enabled = ["email"]

[destinations.inside]
plugin = "email"
host = "127.0.0.1"
tls = "none"
sender = "tocsin@example.com"
to = ["soc@example.com"]
allow_networks = ["127.0.0.0/8"]

[destinations.outside]
plugin = "email"
host = "mail.example.com"
sender = "tocsin@example.com"
to = ["soc@example.com"]
"""


class Log:
    async def last_answer(self, delivery_id: str) -> bytes:
        return delivery_id.encode()


@pytest.fixture
async def live(tmp_path):
    path = tmp_path / "plugins.toml"
    path.write_text(FILE)
    live = await start_plugins(
        await load_configuration(path), PluginFactory(SystemClock(), attempts=Log())
    )
    yield live
    await live.close()


async def test_sockets_reach_what_the_destination_may(live, listening_port):
    inside, outside = (live.channels[name].tools.sockets for name in ("inside", "outside"))
    (await inside.connect("127.0.0.1", listening_port, plain=True)).close()
    with pytest.raises(Misconfigured, match="is not allowed"):
        await outside.connect("127.0.0.1", listening_port)


async def test_the_log_of_attempts_is_handed_to_channels_alone(live):
    channel = live.channels["inside"]
    assert await channel.tools.attempts.last_answer("dlv_1") == b"dlv_1"
    assert live.investigator is not None
    assert isinstance(live.investigator.tools.attempts, NoAttempts)


@pytest.fixture
async def listening_port():
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
