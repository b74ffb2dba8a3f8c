"""Conformance of the CrowdSec provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tocsin import IncidentStatus
from tocsin.testing import Case
from tocsin.testing.conformance import ProviderConformance, exempt
from tocsin_connectors.siem.crowdsec import CrowdSec

from .simulator import LocalApiSimulator, number_of


class TestCrowdSec(ProviderConformance):
    """Alerts do not change, so that each version of a case is an alert of its own."""

    provider = CrowdSec
    simulator = LocalApiSimulator
    severities = ()
    statuses = (IncidentStatus.NEW, IncidentStatus.CLOSED)

    test_an_incident_keeps_its_id = exempt("no alert has a second version")
    test_an_incident_with_an_unknown_status_is_read = exempt(
        "alerts have no status; decisions end or last"
    )

    def settings(self, url: str) -> Mapping[str, Any]:
        return {"url": url, **LocalApiSimulator.machine}

    def external_id(self, case: Case) -> str:
        return f"{number_of(case)}@{case.changed_at:%Y-%m-%dT%H:%M:%SZ}"
