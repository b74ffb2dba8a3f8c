"""Google SecOps: detections that are listed by their creation, ten pages a minute.

What does not apply of the Day: detections are not merged. Everything else of a case does, its
changes long after it was created among them.
"""

from __future__ import annotations

from typing import Any

import orjson
from tests.connectors.secops.simulator import SETTINGS, SecOpsSimulator

from tocsin import Clock
from tocsin.testing import Case, Scenario, Siem
from tocsin_connectors.siem.secops import SecOps
from truth.entrant import Known, known_of, stored
from truth.of_simulators import OfSimulators


class OfSecOps(OfSimulators):
    """An instance of Google SecOps, each of whose detections is an incident."""

    name = "secops"
    kind = SecOps

    def simulate(self, day: Scenario, clock: Clock) -> SecOpsSimulator:
        simulator = SecOpsSimulator(Siem(clock))
        simulator.lists_per_minute = 10
        return simulator

    def settings(self, simulator: SecOpsSimulator) -> dict[str, Any]:
        # What a detection names may be shown later
        return {
            "sign_in_url": simulator.url,
            "refresh_after": ("21m",),
            "changes_for": "2d",
            **SETTINGS,
        }

    def truth(self, siem: Siem) -> dict[str, Known]:
        return {name: known(case) for name, case in siem.truth().items()}

    def unreadable(self, siem: Siem) -> set[bytes]:
        names = (orjson.dumps({"unexpected": name}) for name in siem.unreadable())
        return {b'"id":' + name for name in names}


def known(case: Case) -> Known:
    return known_of(
        case,
        title=stored(shown(case.title)),
        description=shown(case.description),
        merged_into=None,
        alerts=1,
    )


def shown(text: str) -> str:
    """Return what the provider takes of a text."""
    return text.replace("\0", "").strip()[:4096]
