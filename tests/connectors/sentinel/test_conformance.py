"""Conformance of the Sentinel provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin import Severity
from tocsin.testing.conformance import ProviderConformance
from tocsin_connectors.siem.sentinel import Sentinel

from .simulator import SETTINGS, SentinelSimulator


class TestSentinel(ProviderConformance):
    """Sentinel knows no severity above High."""

    provider = Sentinel
    simulator = SentinelSimulator
    severities = tuple(severity for severity in Severity if severity is not Severity.CRITICAL)

    def settings(self, url: str) -> Mapping[str, Any]:
        return {"url": url, "authority": url, "logs_url": url, **SETTINGS}
