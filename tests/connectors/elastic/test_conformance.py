"""Conformance of the Elastic provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin import Severity
from tocsin.testing import Case
from tocsin.testing.conformance import ProviderConformance
from tocsin_connectors.siem.elastic import Elastic

from .simulator import API_KEY, CasesSimulator, ElasticSimulator


class TestAlerts(ProviderConformance):
    provider = Elastic
    simulator = ElasticSimulator
    severities = (Severity.LOW, Severity.MEDIUM, Severity.HIGH, Severity.CRITICAL)

    def settings(self, url: str) -> Mapping[str, Any]:
        return {"url": url, "kibana_url": url, "api_key": API_KEY, "incidents": ["alerts"]}


class TestCases(ProviderConformance):
    provider = Elastic
    simulator = CasesSimulator
    severities = (Severity.LOW, Severity.MEDIUM, Severity.HIGH, Severity.CRITICAL)

    def settings(self, url: str) -> Mapping[str, Any]:
        return {"url": url, "kibana_url": url, "api_key": API_KEY, "incidents": ["cases"]}

    def external_id(self, case: Case) -> str:
        return f"case:{case.id}"
