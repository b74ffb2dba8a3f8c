"""Conformance of the Wazuh provider, for both layouts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.connectors.wazuh.simulator import FindingsSimulator, WazuhSimulator, group_of

from tocsin import IncidentStatus
from tocsin.testing import Case
from tocsin.testing.conformance import ProviderConformance, exempt
from tocsin_connectors.siem.wazuh import Wazuh


class TestWazuh4(ProviderConformance):
    """Each version of a case is an alert; those of one hour are one incident."""

    provider = Wazuh
    simulator = WazuhSimulator
    statuses = (IncidentStatus.NEW,)

    # `test_alerts` has these
    test_fractions_of_any_length_are_read = exempt("an alert has one time, that of its change")
    test_times_of_other_zones_are_read = exempt("an alert has one time, that of its change")

    def settings(self, url: str) -> Mapping[str, Any]:
        own = {"min_severity": "Informational", "overlap": "10m"}
        return {"url": url, **WazuhSimulator.user, **own}

    def external_id(self, case: Case) -> str:
        return group_of(case)


class TestWazuh5(TestWazuh4):
    """The same, of findings."""

    simulator = FindingsSimulator
