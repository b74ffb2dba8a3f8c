"""Elastic: alerts by points in time of an Elasticsearch, and the cases of a Kibana.

What does not apply of the Day: nothing is merged, and nothing is Informational.
"""

from __future__ import annotations

from typing import Any

import orjson
from tests.connectors.elastic.simulator import API_KEY, CasesSimulator

from tocsin import Clock, EntityKind, Severity
from tocsin.testing import Case, Scenario, Siem
from tocsin_connectors.siem.elastic import Elastic
from truth.entrant import Known, known_of, stored
from truth.of_simulators import OfSimulators
from truth.search_head import shown


class HalfOfEach(CasesSimulator):
    """Every other incident of the day is a case, the rest are alerts."""

    def is_case(self, case: Case) -> bool:
        return case.number % 2 == 1


class AlertsAndCases(OfSimulators):
    """Elastic Security over HTTP."""

    name = "elastic"
    kind = Elastic

    def simulate(self, day: Scenario, clock: Clock) -> HalfOfEach:
        self._simulator = HalfOfEach(Siem(clock))
        return self._simulator

    def settings(self, simulator: HalfOfEach) -> dict[str, Any]:
        return {"kibana_url": simulator.url, "api_key": API_KEY}

    def truth(self, siem: Siem) -> dict[str, Known]:
        return {self._name(case): self._known(case) for case in siem.truth().values()}

    def unreadable(self, siem: Siem) -> set[bytes]:
        found = siem.unreadable().values()
        return {self._key(case) + orjson.dumps({"unexpected": case.id}) for case in found}

    def _name(self, case: Case) -> str:
        return f"case:{case.id}" if self._simulator.is_case(case) else case.id

    def _key(self, case: Case) -> bytes:
        return b'"id":' if self._simulator.is_case(case) else b'"_id":'

    def _known(self, case: Case) -> Known:
        has_user = any(entity.kind is EntityKind.USER for entity in case.entities)
        return known(case, alerts=1 if has_user or not self._simulator.is_case(case) else 0)


def known(case: Case, *, alerts: int) -> Known:
    # Elastic has no such word
    severity = Severity.MEDIUM if case.severity is Severity.INFORMATIONAL else case.severity
    moment = case.changed_at
    return known_of(
        case,
        title=stored(shown(case.title)),
        description=shown(case.description),
        severity=severity if isinstance(severity, Severity) else Severity.MEDIUM,
        merged_into=None,
        changed_at=moment.replace(microsecond=moment.microsecond // 1000 * 1000),
        alerts=alerts,
    )
