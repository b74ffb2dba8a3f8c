"""Sentinel, whose entities come by requests of their own, and Defender XDR."""

from __future__ import annotations

from typing import Any

from tests.connectors.defender.simulator import SETTINGS as OF_DEFENDER
from tests.connectors.defender.simulator import DefenderAlertSimulator, DefenderSimulator
from tests.connectors.sentinel.simulator import SETTINGS as OF_SENTINEL
from tests.connectors.sentinel.simulator import SentinelSimulator

from tocsin import Severity
from tocsin.testing import Case, Siem
from tocsin_connectors.siem.defender import Defender
from tocsin_connectors.siem.sentinel import Sentinel
from truth.entrant import Known, known_of, stored
from truth.of_simulators import OfSimulators


def as_told(case: Case, **differently: Any) -> Known:
    """Return what is to be known of a case, of which NUL and what is too long is not kept."""
    kept = {
        "title": stored(case.title.replace("\0", "").strip()[:4096]),
        "description": case.description.replace("\0", "").strip()[:4096],
    }
    if case.severity is Severity.CRITICAL:  # of which neither knows
        kept["severity"] = Severity.HIGH
    return known_of(case, **kept | differently)


class OfSentinel(OfSimulators):
    """A workspace of Sentinel, with an alert for each entity of an incident.

    An incident takes three requests, and here a turn is all the time that there is to read again:
    so each is read again once, when all of it is there.
    """

    name = "sentinel"
    kind = Sentinel

    def simulate(self, day, clock) -> SentinelSimulator:
        return SentinelSimulator(Siem(clock))

    def settings(self, simulator: SentinelSimulator) -> dict[str, Any]:
        places = {"authority": simulator.url, "logs_url": simulator.url}
        return {**places, "refresh_after": ("30m",), **OF_SENTINEL}

    def truth(self, siem: Siem) -> dict[str, Known]:
        return {
            name: as_told(case, alerts=len(set(case.entities)))
            for name, case in siem.truth().items()
        }

    def unreadable(self, siem: Siem) -> set[bytes]:
        return {f'"incidentNumber":{case.number},'.encode() for case in siem.unreadable().values()}


class OfDefender(OfSimulators):
    """A tenant of Defender XDR, with one alert for each incident."""

    name = "defender"
    kind = Defender

    def simulate(self, day, clock) -> DefenderSimulator:
        return DefenderSimulator(Siem(clock))

    def settings(self, simulator: DefenderSimulator) -> dict[str, Any]:
        return {"authority": simulator.url, **OF_DEFENDER}

    def truth(self, siem: Siem) -> dict[str, Known]:
        return {name: as_told(case, alerts=1) for name, case in siem.truth().items()}

    def unreadable(self, siem: Siem) -> set[bytes]:
        return {f"/incidents/{case.number}?tid=".encode() for case in siem.unreadable().values()}


class OfDefenderAlerts(OfDefender):
    """A tenant of Defender XDR whose alerts are in no incident."""

    name = "defender-alerts"

    def simulate(self, day, clock) -> DefenderAlertSimulator:
        return DefenderAlertSimulator(Siem(clock))

    def settings(self, simulator: DefenderSimulator) -> dict[str, Any]:
        return {**super().settings(simulator), "alerts": "without-incident"}

    def truth(self, siem: Siem) -> dict[str, Known]:
        return {
            f"alert:{name}": as_told(case, alerts=1, merged_into=None)
            for name, case in siem.truth().items()
        }

    def unreadable(self, siem: Siem) -> set[bytes]:
        return {f"/alerts/{case.number}?tid=".encode() for case in siem.unreadable().values()}
