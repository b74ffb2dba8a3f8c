"""OpenSearch Security Analytics, which lists alerts by when they began, and no changes.

What does not apply of the Day: alerts are not merged. Everything else of a case does, its changes
long after it began among them.
"""

from __future__ import annotations

from typing import Any

from tests.connectors.opensearch.simulator import DETECTOR, AnalyticsSimulator, name_of

from tocsin import Clock
from tocsin.testing import Scenario, Siem
from tocsin_connectors.siem.opensearch import OpenSearch
from truth.entrant import Known, known_of, stored
from truth.local_api import shown
from truth.of_simulators import OfSimulators


class Analytics(OfSimulators):
    """Alerts over HTTP."""

    name = "opensearch"
    kind = OpenSearch

    def simulate(self, day: Scenario, clock: Clock) -> AnalyticsSimulator:
        return AnalyticsSimulator(Siem(clock))

    def settings(self, simulator: AnalyticsSimulator) -> dict[str, Any]:
        return {**simulator.user, "changes_for": "2d"}

    def truth(self, siem: Siem) -> dict[str, Known]:
        return {name_of(case): known(case) for case in siem.truth().values()}

    def unreadable(self, siem: Siem) -> set[bytes]:
        return {
            f'"id":{{"unexpected":"{case.id}"}}'.encode() for case in siem.unreadable().values()
        }


def known(case) -> Known:
    said = shown(case.description), f"Detector: {AnalyticsSimulator.detectors[DETECTOR]}"
    return known_of(
        case,
        title=stored(shown(case.title)),
        description="\n".join(filter(None, said)),
        merged_into=None,
        alerts=1,
    )
