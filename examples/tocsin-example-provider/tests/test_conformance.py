"""The provider, held against the contract tests that come with Tocsin."""

from __future__ import annotations

from typing import Any

from simulator import ExampleSimulator
from tocsin_example.provider import ExampleProvider

from tocsin.testing.conformance import ProviderConformance


class TestExample(ProviderConformance):
    """Every rule that a provider of an HTTP API has to keep."""

    provider = ExampleProvider
    simulator = ExampleSimulator

    def settings(self, url: str) -> dict[str, Any]:
        """Return what an operator would set for the simulator."""
        return {"url": url, "client_id": "tocsin", "client_secret": "a secret"}
