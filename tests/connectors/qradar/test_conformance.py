"""Conformance of the QRadar provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.testing import Case
from tocsin.testing.conformance import ProviderConformance
from tocsin_connectors.siem.qradar import QRadar

from .simulator import REASON, SETTINGS, QRadarSimulator, offense_id


class TestQRadar(ProviderConformance):
    """Offenses of a console."""

    provider = QRadar
    simulator = QRadarSimulator

    def settings(self, url: str) -> Mapping[str, Any]:
        return {"url": url, **SETTINGS, "closing_reason_id": REASON}

    def external_id(self, case: Case) -> str:
        return str(offense_id(case))
