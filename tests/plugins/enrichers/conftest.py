"""Fixtures that create enrichers like the service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest

from tocsin import Enricher
from tocsin.hookspecs import NoKnowledge
from tocsin.observables import Environment, EnvironmentSettings
from tocsin.testing import loopback_client, make_settings, make_tools

Make = Callable[..., Enricher]


@pytest.fixture
async def make(clock) -> AsyncIterator[Make]:
    """Make an enricher of a kind; its settings are given as in `plugins.toml`."""
    http = loopback_client()

    def made(kind: type[Enricher], /, *, knowledge: Any = None, own=(), name="test", **settings):
        environment = Environment(EnvironmentSettings(internal_domains=own))
        tools = replace(
            make_tools(http, name, clock),
            environment=environment,
            knowledge=knowledge or NoKnowledge(),
        )
        return kind(make_settings(kind, name, **settings), tools)

    yield made
    await http.close()
