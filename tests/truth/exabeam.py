"""Exabeam: cases that are found by when they were created, though they change later."""

from __future__ import annotations

from typing import Any

import orjson
from tests.connectors.exabeam.simulator import MEMBERS, SETTINGS, ExabeamSimulator

from tocsin import Clock
from tocsin.testing import Case, Scenario, Siem
from tocsin_connectors.siem.exabeam import Exabeam
from truth.entrant import Known, known_of, stored
from truth.of_simulators import OfSimulators


class OfExabeam(OfSimulators):
    """A Threat Center, each of whose cases is an incident."""

    name = "exabeam"
    kind = Exabeam

    def simulate(self, day: Scenario, clock: Clock) -> ExabeamSimulator:
        return ExabeamSimulator(Siem(clock))

    def settings(self, simulator: ExabeamSimulator) -> dict[str, Any]:
        # What a case names may be shown later
        return {"refresh_after": ("21m",), "changes_for": "2d", **SETTINGS}

    def truth(self, siem: Siem) -> dict[str, Known]:
        return {name: known(case) for name, case in siem.truth().items()}

    def unreadable(self, siem: Siem) -> set[bytes]:
        names = (orjson.dumps({"unexpected": name}) for name in siem.unreadable())
        return {b'"caseId":' + name for name in names}


def known(case: Case) -> Known:
    """Return what is to be known of a case."""
    return known_of(
        case,
        title=stored(case.title.replace("\0", "").strip()[:4096]),
        description=case.description.replace("\0", "").strip()[:4096],
        merged_into=None,
        entities=frozenset(one for one in case.entities if one.kind in MEMBERS),
        alerts=1,
    )
