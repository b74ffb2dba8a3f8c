"""Conformance of the CrowdStrike provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.testing.conformance import ProviderConformance
from tocsin_connectors.siem.crowdstrike import CrowdStrike

from .simulator import SETTINGS, FalconSimulator


class TestCrowdStrike(ProviderConformance):
    """Alerts of Falcon."""

    provider = CrowdStrike
    simulator = FalconSimulator

    def settings(self, url: str) -> Mapping[str, Any]:
        return {"url": url, **SETTINGS}
