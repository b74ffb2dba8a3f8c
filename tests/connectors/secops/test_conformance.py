"""Conformance of the SecOps provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.testing.conformance import ProviderConformance, exempt
from tocsin_connectors.siem.secops import SecOps

from .simulator import SETTINGS, SecOpsSimulator


class TestSecOps(ProviderConformance):
    """Detections, which are listed by when they were created."""

    provider = SecOps
    simulator = SecOpsSimulator

    # `test_provider` has these
    test_a_missing_member_is_not_an_empty_list = exempt("Google leaves out a list that is empty")
    test_a_throttled_siem_is_read_to_the_end = exempt("each look for changes lists all detections")

    def settings(self, url: str) -> Mapping[str, Any]:
        own = {"changes_every": "1s", "changes_for": "31d", "overlap": "10m", "settle_delay": "30s"}
        return {"url": url, "sign_in_url": url, "lists_per_minute": 600, **SETTINGS, **own}
