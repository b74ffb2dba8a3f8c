"""Splunk: a search head whose jobs are never done at once, and whose findings come late.

What does not apply of the Day: findings are not merged, and what they name does not come later.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
from tests.connectors.splunk.simulator import TOKEN, SplunkSimulator

from tocsin import Clock
from tocsin.testing import Case, Scenario, Siem
from tocsin_connectors.siem.splunk import Splunk
from truth.entrant import Known, known_of, stored
from truth.of_simulators import OfSimulators


class Findings(Siem):
    """Findings, which name what they do from the beginning."""

    def put(self, case: Case) -> Case:
        return super().put(replace(case, entities_at=None))


class OfSplunk(OfSimulators):
    """Splunk Enterprise Security over HTTP."""

    name = "splunk"
    kind = Splunk

    def simulate(self, day: Scenario, clock: Clock) -> SplunkSimulator:
        return SplunkSimulator(Findings(clock))

    def settings(self, simulator: SplunkSimulator) -> dict[str, Any]:
        return {"token": TOKEN, "refresh_after": ()}

    def truth(self, siem: Siem) -> dict[str, Known]:
        return {name: known(case) for name, case in siem.truth().items()}

    def unreadable(self, siem: Siem) -> set[bytes]:
        names = (orjson.dumps({"unexpected": name}) for name in siem.unreadable())
        return {b'"event_id":' + name for name in names}


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
