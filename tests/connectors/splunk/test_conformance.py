"""Conformance of the Splunk provider, for versions 7 and 8."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin.testing import Case
from tocsin.testing.conformance import ProviderConformance
from tocsin_connectors.siem.splunk import Splunk

from .simulator import TOKEN, FindingsSimulator, SplunkSimulator


class TestNotableEvents(ProviderConformance):
    provider = Splunk
    simulator = SplunkSimulator

    def settings(self, url: str) -> Mapping[str, Any]:
        return {"url": url, "token": TOKEN}


class TestFindings(ProviderConformance):
    provider = Splunk
    simulator = FindingsSimulator

    def settings(self, url: str) -> Mapping[str, Any]:
        return {"url": url, "token": TOKEN}

    def external_id(self, case: Case) -> str:
        return f"{case.id}@@notable@@time{int(case.created_at.timestamp())}"
