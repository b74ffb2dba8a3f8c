"""Conformance of the Defender provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin import Severity
from tocsin.testing import Case
from tocsin.testing.conformance import ProviderConformance
from tocsin_connectors.siem.defender import Defender

from .simulator import SETTINGS, DefenderAlertSimulator, DefenderSimulator


class TestDefender(ProviderConformance):
    """Defender XDR knows no severity above high."""

    provider = Defender
    simulator = DefenderSimulator
    severities = tuple(severity for severity in Severity if severity is not Severity.CRITICAL)

    def settings(self, url: str) -> Mapping[str, Any]:
        return {"url": url, "authority": url, **SETTINGS}


class TestAlerts(ProviderConformance):
    """Alerts without an incident."""

    provider = Defender
    simulator = DefenderAlertSimulator
    severities = TestDefender.severities

    def settings(self, url: str) -> Mapping[str, Any]:
        return {"url": url, "authority": url, "alerts": "without-incident", **SETTINGS}

    def external_id(self, case: Case) -> str:
        return f"alert:{case.id}"
