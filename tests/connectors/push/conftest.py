"""A push provider, and bodies of the senders in each format."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog

from tocsin import PushRequest, Received, Tools
from tocsin.testing.conformance.push_harness import combine_batches
from tocsin_connectors.siem.push import Push

TOKEN = "a-token-of-the-sender"
BODIES = Path(__file__).parent / "bodies"


@pytest.fixture
def body() -> Callable[..., Any]:
    """Return the body of a name, with some of its members replaced."""

    def load(name: str, **members: Any) -> Any:
        return json.loads((BODIES / f"{name}.json").read_text(encoding="utf-8")) | members

    return copy.deepcopy(load)


@pytest.fixture
def make(clock, tmp_path, monkeypatch) -> Callable[..., Any]:
    """Return a started provider with these settings."""
    monkeypatch.setenv("PUSH_TOKEN", TOKEN)

    async def started(**settings: Any) -> Push:
        written = {"plugin": "push", "token": {"env": "PUSH_TOKEN"}} | settings
        tools = Tools(
            name="alerts",
            http=None,
            clock=clock,
            log=structlog.get_logger(),
            public_url="https://tocsin.example",
        )
        provider = Push(Push.Settings.model_validate(written), tools)
        await provider.start()
        return provider

    return started


@pytest.fixture
def push(make) -> Callable[..., Any]:
    """Push a body in a format, and return what was received."""

    async def pushed(format: str, body: Any) -> Received:  # noqa: A002 - the setting's name
        provider = await make(format=format)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        request = PushRequest(headers=headers, body=json.dumps(body).encode())
        return combine_batches([batch async for batch in provider.receive(request)])

    return pushed
