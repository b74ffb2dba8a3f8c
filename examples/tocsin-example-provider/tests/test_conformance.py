"""Conformance of the example provider."""

from __future__ import annotations

from typing import Any

from simulator import ExampleSimulator
from tocsin_example.provider import ExampleProvider

from tocsin.testing.conformance import ProviderConformance


class TestExample(ProviderConformance):
    """Every rule for a provider of an HTTP API."""

    provider = ExampleProvider
    simulator = ExampleSimulator

    def settings(self, url: str) -> dict[str, Any]:
        """Return the settings for the simulator."""
        return {"url": url, "client_id": "tocsin", "client_secret": "a secret"}
