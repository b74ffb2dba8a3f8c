"""CrowdSec: a Local API whose database is lost twice on the day, and begins its ids at 1 again.

What applies of the Day: when what is new, its titles, descriptions and entities, what becomes
visible late or is malformed, every mishap of requests and of clocks. What does not, since alerts
do not change: a case's further versions are alerts of their own, nothing is merged, entities do not
come later, severities are not told. No single alert breaks a list either, so none is poisoned.
What a day of alerts has instead is decisions, which end: only reading again shows that.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from aiohttp import web
from tests.connectors.crowdsec.simulator import LocalApiSimulator

from tocsin import Clock, IncidentStatus, Severity, Window
from tocsin.testing import Case, Scenario, Siem
from tocsin_connectors.siem.crowdsec import CrowdSec
from truth.entrant import Known, known_of, stored
from truth.of_simulators import OfSimulators

REFRESH_AFTER = ("30m", "150m")
BANS = (timedelta(minutes=4), timedelta(minutes=40), timedelta(hours=2), timedelta(days=30), None)
"""How long the decision of each fifth alert lasts, if it has one: not up to the last reread."""
LOST_AFTER = (timedelta(hours=8), timedelta(hours=16))
"""When on the day the Local API is set up anew, knowing nothing of before."""
CUT_OFF = timedelta(hours=3)
"""So long before that nothing reaches it: nobody could know alerts that were lost unread."""


class Alerts(Siem):
    """The alerts of a Local API, and of those that were in its place before."""

    def __init__(self, clock: Clock, lost_at: list[datetime]) -> None:
        super().__init__(clock)
        self.ever: list[Case] = []
        """Every alert that there was, as it was stored."""
        self._lost_at = deque(lost_at)
        self._spooled: list[Case] = []
        self._began_at = clock.now()
        self._numbers = count(1)

    def put(self, case: Case) -> Case:
        """Store what a sensor reports; while it cannot, that waits at the sensor."""
        now = self.clock.now()
        if self._lost_at and now >= self._lost_at[0]:
            self._begin_anew()
        elif self._lost_at and now >= self._lost_at[0] - CUT_OFF:
            self._spooled.append(case)
            return case
        return self._store(case)

    def changed(self, window: Window) -> list[Case]:
        """Return the alerts of a window, at once: there is one version of each, of thousands."""
        now = self.clock.now()
        first, last = (bisect_left(self._timeline, (end, "")) for end in (window.start, window.end))
        alerts = (self._versions[name][0] for _, name in self._timeline[first:last])
        return [alert for alert in alerts if alert.visible_at is None or alert.visible_at <= now]

    def _begin_anew(self) -> None:
        """Forget every alert, and take what has been waiting."""
        self._versions.clear()
        self._timeline.clear()
        self._lost_at.popleft()
        self._began_at, self._numbers = self.clock.now(), count(1)
        for case in self._spooled:
            self._store(case)
        self._spooled.clear()

    def _store(self, case: Case) -> Case:
        number = next(self._numbers)
        alert = super().put(
            replace(
                case,
                id=str(number),
                number=number,
                changed_at=max(case.changed_at, self._began_at),
                merged_into=None,
                entities_at=None,
            )
        )
        self.ever.append(alert)
        return alert


class FailingLocalApi(LocalApiSimulator):
    """A Local API whose decisions end."""

    async def get_alert(self, request: web.Request) -> web.Response:
        """Answer at once; looking through thousands of alerts each time would take the day."""
        return self.json(self.show(self.get(request.match_info["number"])))

    def render(self, case: Case) -> dict[str, Any]:
        alert, length = super().render(case), ban(case)
        if length is None:
            return alert | {"decisions": None}
        if case.status is not IncidentStatus.CLOSED:  # else it was lifted at once
            left = case.changed_at + length - self.siem.now()
            alert["decisions"][0]["duration"] = f"{left.total_seconds():.9f}s"
        return alert


class LocalApi(OfSimulators):
    """CrowdSec over HTTP."""

    name = "crowdsec"
    kind = CrowdSec

    def simulate(self, day: Scenario, clock: Clock) -> FailingLocalApi:
        return FailingLocalApi(Alerts(clock, [day.start + after for after in LOST_AFTER]))

    def settings(self, simulator: FailingLocalApi) -> dict[str, Any]:
        return {**simulator.machine, "refresh_after": REFRESH_AFTER}

    def truth(self, siem: Alerts) -> dict[str, Known]:
        alerts = [alert for alert in siem.ever if not alert.malformed]
        return {f"{alert.id}@{created(alert)}": known(alert) for alert in alerts}

    def unreadable(self, siem: Alerts) -> set[bytes]:
        alerts = [alert for alert in siem.ever if alert.malformed]
        numbers = {f'"id":{{"unexpected":{alert.number}}}' for alert in alerts}
        times = {f'"created_at":{{"unexpected":"{created(alert)}"}}' for alert in alerts}
        return {part.encode() for part in numbers | times}


def ban(alert: Case) -> timedelta | None:
    """Return how long the decision of an alert lasts, None where there is none."""
    return BANS[alert.number % len(BANS)]


def created(alert: Case) -> str:
    return f"{alert.changed_at:%Y-%m-%dT%H:%M:%SZ}"


def known(alert: Case) -> Known:
    length = ban(alert)
    is_over = length and (alert.status is IncidentStatus.CLOSED or length < timedelta(days=1))
    said = shown(alert.description), "Seen by: sensor-1", length and "Decided: ban"
    return known_of(
        alert,
        title=stored(shown(alert.title)),
        description="\n".join(filter(None, said)),
        severity=Severity.MEDIUM,
        status=IncidentStatus.CLOSED if is_over else IncidentStatus.NEW,
        changed_at=alert.changed_at.replace(microsecond=0),
        alerts=1,
    )


def shown(text: str) -> str:
    """Return what the provider takes of a text."""
    return text.replace("\0", "").strip()[:4096]
