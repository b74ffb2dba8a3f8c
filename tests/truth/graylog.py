"""Graylog: events that are found by when they were made, to the millisecond."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson
from tests.connectors.graylog.simulator import FIELDS, SETTINGS, GraylogSimulator

from tocsin import Clock, IncidentStatus
from tocsin.testing import Case, Scenario, Siem
from tocsin_connectors.siem.graylog import Graylog
from truth.entrant import Known, known_of, stored
from truth.of_simulators import OfSimulators


class OfGraylog(OfSimulators):
    """A Graylog, each of whose events is an incident; each version is made again."""

    name = "graylog"
    kind = Graylog

    def simulate(self, day: Scenario, clock: Clock) -> GraylogSimulator:
        return GraylogSimulator(Siem(clock))

    def settings(self, simulator: GraylogSimulator) -> dict[str, Any]:
        return {"refresh_after": ("21m",), **SETTINGS}

    def truth(self, siem: Siem) -> dict[str, Known]:
        return {name: known(case) for name, case in siem.truth().items()}

    def unreadable(self, siem: Siem) -> set[bytes]:
        names = (orjson.dumps({"unexpected": name}) for name in siem.unreadable())
        return {b'"id":' + name for name in names}


def known(case: Case) -> Known:
    """Return what is to be known of a case: entities that a field can name, and no status."""
    return known_of(
        case,
        title=stored(case.title.replace("\0", "").strip()[:4096]),
        description="Event definition: Failed logins",
        status=IncidentStatus.NEW,
        merged_into=None,
        changed_at=trim(case.changed_at),
        entities=frozenset(entity for entity in case.entities if entity.kind in FIELDS),
        alerts=1,
    )


def trim(moment: datetime) -> datetime:
    """Return a time to the millisecond."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
