"""QRadar: offenses with three clocks, of which closing moves only one.

What does not apply of the Day: offenses are not merged, and one that is closed never opens again.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson
from tests.connectors.qradar.simulator import SETTINGS, QRadarSimulator, offense_id
from tests.connectors.qradar.simulator import shown as shown_of

from tocsin import Clock, EntityKind, IncidentStatus
from tocsin.testing import Case, Scenario, Siem
from tocsin_connectors.siem.qradar import QRadar
from truth.entrant import Known, known_of, stored
from truth.local_api import shown
from truth.of_simulators import OfSimulators


class Offenses(Siem):
    """Offenses, of which those that were closed stay so."""

    def put(self, case: Case) -> Case:
        before = self._versions.get(case.id)
        if before and before[-1].status is IncidentStatus.CLOSED:
            case = replace(case, status=IncidentStatus.CLOSED)
        return super().put(case)


class OfQRadar(OfSimulators):
    """A console over HTTP."""

    name = "qradar"
    kind = QRadar

    def simulate(self, day: Scenario, clock: Clock) -> QRadarSimulator:
        self.simulator = QRadarSimulator(Offenses(clock))
        return self.simulator

    def settings(self, simulator: QRadarSimulator) -> dict[str, Any]:
        return dict(SETTINGS)

    def truth(self, siem: Siem) -> dict[str, Known]:
        return {str(offense_id(case)): self.known(case) for case in siem.truth().values()}

    def unreadable(self, siem: Siem) -> set[bytes]:
        names = (offense_id(case) for case in siem.unreadable().values())
        return {b'"id":' + orjson.dumps({"unexpected": name}) for name in names}

    def known(self, case: Case) -> Known:
        times = self.simulator.times(case)
        told = [times[name] for name in ("last_persisted_time", "close_time") if times[name]]
        return known_of(
            case,
            title=stored(" ".join(shown(f"{case.title}\n").split()) or "Offense"),
            description="\n".join(described(case)),
            entities=frozenset(shown_of(case.entities)),
            changed_at=datetime.fromtimestamp(max(told) / 1000, UTC),
            merged_into=None,
            alerts=1,
        )


def described(case: Case) -> list[str]:
    """Return the lines that say what an offense is about."""
    users = [entity.value for entity in case.entities if entity.kind is EntityKind.USER]
    hosts = [entity.value for entity in case.entities if entity.kind is EntityKind.HOST]
    logs = ["Custom Rule Engine-8 :: qradar", *(f"Linux @ {host}" for host in hosts)]
    about = shown(case.description)
    return [
        f"Username: {users[0]}" if users else "Event Name: Made Up",
        *([f"Categories: {about}"] if about else []),
        f"Log sources: {', '.join(logs)}",
        "Source network: other",
        "Destination networks: other",
        *(
            ["Closed by: admin", "Closed as: Mended"]
            if case.status is IncidentStatus.CLOSED
            else []
        ),
    ]
