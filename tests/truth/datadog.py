"""Datadog: signals that are found by when they were made, though they change later."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import orjson
from tests.connectors.datadog.simulator import KINDS, SETTINGS, DatadogSimulator

from tocsin import Clock
from tocsin.testing import Case, Scenario, Siem
from tocsin_connectors.siem.datadog import Datadog
from truth.entrant import Known, known_of, stored
from truth.of_simulators import OfSimulators


class OfDatadog(OfSimulators):
    """An organization, each of whose signals is an incident."""

    name = "datadog"
    kind = Datadog

    def simulate(self, day: Scenario, clock: Clock) -> DatadogSimulator:
        return DatadogSimulator(Siem(clock))

    def settings(self, simulator: DatadogSimulator) -> dict[str, Any]:
        # What a signal names may be shown later
        return {"refresh_after": ("21m",), "changes_for": "2d", **SETTINGS}

    def truth(self, siem: Siem) -> dict[str, Known]:
        return {name: known(case) for name, case in siem.truth().items()}

    def unreadable(self, siem: Siem) -> set[bytes]:
        names = (orjson.dumps({"unexpected": name}) for name in siem.unreadable())
        return {b'"id":' + name for name in names}


def known(case: Case) -> Known:
    """Return what is to be known of a case."""
    title = shown(case.title)
    message = shown(case.description)
    lines = [line for line in (message, "Rule: A rule") if line and line != title]
    return known_of(
        case,
        title=stored(title),
        description="\n".join(lines),
        merged_into=None,
        changed_at=changed(case),
        entities=frozenset(one for one in case.entities if one.kind in KINDS.values()),
        alerts=1,
    )


def changed(case: Case) -> datetime:
    """Return the time of a version as the simulator shows it, in milliseconds."""
    moment = case.changed_at
    whole = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    return whole if moment == case.created_at else whole + timedelta(milliseconds=1)


def shown(text: str) -> str:
    """Return what the provider takes of a text."""
    return text.replace("\0", "").strip()[:4096]
