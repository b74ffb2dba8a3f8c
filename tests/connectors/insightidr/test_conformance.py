"""Conformance of the InsightIDR provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.testing.conformance import ProviderConformance, exempt
from tocsin_connectors.siem.insightidr import InsightIDR

from .simulator import SETTINGS, InsightIDRSimulator


class TestInsightIDR(ProviderConformance):
    """Investigations, which are found by when they were created."""

    provider = InsightIDR
    simulator = InsightIDRSimulator

    test_a_throttled_siem_is_read_to_the_end = exempt(
        "each look for changes lists all investigations"
    )

    def settings(self, url: str) -> Mapping[str, Any]:
        own = {"changes_every": "1s", "changes_for": "31d", "settle_delay": "30s"}
        return {"url": url, **SETTINGS, **own}
