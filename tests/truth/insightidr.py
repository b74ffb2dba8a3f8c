"""InsightIDR: investigations that are found by when they were created, though they change later."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import orjson
from tests.connectors.insightidr.simulator import SETTINGS, InsightIDRSimulator, trim

from tocsin import Clock
from tocsin.testing import Case, Scenario, Siem
from tocsin_connectors.siem.insightidr import InsightIDR
from truth.entrant import Known, known_of, stored
from truth.of_simulators import OfSimulators


class OfInsightIDR(OfSimulators):
    """An organization, each of whose investigations has an alert with the evidence.

    An investigation takes four requests, and each is read again once, when all of it is there.
    """

    name = "insightidr"
    kind = InsightIDR

    def simulate(self, day: Scenario, clock: Clock) -> InsightIDRSimulator:
        return InsightIDRSimulator(Siem(clock))

    def settings(self, simulator: InsightIDRSimulator) -> dict[str, Any]:
        return {"refresh_after": ("30m",), "changes_for": "2d", **SETTINGS}

    def truth(self, siem: Siem) -> dict[str, Known]:
        return {name: known(case) for name, case in siem.truth().items()}

    def unreadable(self, siem: Siem) -> set[bytes]:
        names = (orjson.dumps({"unexpected": name}) for name in siem.unreadable())
        return {b'"rrn":' + name for name in names}


def known(case: Case) -> Known:
    """Return what is to be known of a case, whose description is shown as a tag."""
    tag = case.description.replace("\0", "").strip()[:4096]
    return known_of(
        case,
        title=stored(case.title.replace("\0", "").strip()[:4096]),
        description="\n".join(["Source: ALERT", *([f"Tags: {tag}"] if tag else [])]),
        merged_into=None,
        changed_at=changed(case),
        alerts=1,
    )


def changed(case: Case) -> datetime:
    """Return the time of a version as the simulator shows it, in milliseconds."""
    is_new = case.changed_at == case.created_at
    return trim(case.changed_at) + timedelta(milliseconds=0 if is_new else 1)
