"""CrowdStrike: alerts that are listed by the time of their update, to the millisecond.

What does not apply of the Day: alerts are not merged.
"""

from __future__ import annotations

from typing import Any

import orjson
from tests.connectors.crowdstrike.simulator import SETTINGS, FalconSimulator

from tocsin import Clock
from tocsin.testing import Case, Scenario, Siem
from tocsin_connectors.siem.crowdstrike import CrowdStrike
from truth.entrant import Known, known_of, stored
from truth.of_simulators import OfSimulators


class OfFalcon(OfSimulators):
    """A customer of CrowdStrike, each of whose alerts is an incident."""

    name = "crowdstrike"
    kind = CrowdStrike

    def simulate(self, day: Scenario, clock: Clock) -> FalconSimulator:
        return FalconSimulator(Siem(clock))

    def settings(self, simulator: FalconSimulator) -> dict[str, Any]:
        return dict(SETTINGS)

    def truth(self, siem: Siem) -> dict[str, Known]:
        return {name: known(case) for name, case in siem.truth().items()}

    def unreadable(self, siem: Siem) -> set[bytes]:
        names = (orjson.dumps({"unexpected": name}) for name in siem.unreadable())
        return {b'"composite_id":' + name for name in names}


def known(case: Case) -> Known:
    lines = (shown(case.description), f"Group: aggind:{case.number}")
    return known_of(
        case,
        title=stored(shown(case.title)),
        description="\n".join(filter(None, lines)),
        merged_into=None,
        alerts=1,
    )


def shown(text: str) -> str:
    """Return what the provider takes of a text."""
    return text.replace("\0", "").strip()[:4096]
