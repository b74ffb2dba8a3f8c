"""Conformance of the provider."""

from __future__ import annotations

from typing import Any

from rpc_simulator import RpcSimulator
from tocsin_example_rpc.provider import RpcProvider

from tocsin.testing.conformance import ProviderConformance


class TestRpc(ProviderConformance):
    """All rules for a provider that reads an HTTP API."""

    provider = RpcProvider
    simulator = RpcSimulator
    fills = ("entities", "changed_at", "raw_status")

    def settings(self, url: str) -> dict[str, Any]:
        """Return the settings for the simulator."""
        return {"url": url, "user": "tocsin", "password": "a secret"}
