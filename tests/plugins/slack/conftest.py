"""Simulated workspace on loopback, and deliveries to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tocsin.testing import ManualClock, loopback_client, make_settings, make_tools
from tocsin_plugins.slack import Slack as Channel

from .simulator import CHANNEL, TOKEN, Slack

Make = Callable[..., Channel]


@pytest.fixture
async def slack(clock: ManualClock) -> AsyncIterator[Slack]:
    async with Slack(clock) as simulated:
        yield simulated


@pytest.fixture
async def make(slack: Slack, clock: ManualClock) -> AsyncIterator[Make]:
    """Create a channel; settings are given as in `plugins.toml`, but secrets as text."""
    http = loopback_client()

    def made(**settings: Any) -> Channel:
        bot = {"bot_token": TOKEN, "channel": CHANNEL, "api_url": slack.url}
        given = settings if "webhook_url" in settings else {**bot, **settings}
        given = {"allow_networks": ["127.0.0.0/8"], **given}
        return Channel(make_settings(Channel, "slack", **given), make_tools(http, "soc", clock))

    yield made
    await http.close()
