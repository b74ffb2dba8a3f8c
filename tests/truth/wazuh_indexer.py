"""Wazuh, of whose alerts many are one incident, and which never change.

What applies of the Day: each version of a case is an alert of a rule of its own, so that those of
one hour are one incident with their number in it. What does not: statuses, mergers, and entities
that come later. Half of the cases are findings, as Wazuh 5 writes them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from tests.connectors.indices.simulator import Document, behind
from tests.connectors.wazuh.simulator import (
    AGENT,
    FindingsSimulator,
    WazuhSimulator,
    document_id,
    group_of,
)

from tocsin import Clock, Entity, EntityKind, Severity, Window
from tocsin.testing import Case, Scenario, Siem
from tocsin_connectors.siem.wazuh import Wazuh
from truth.entrant import Known, known_of, stored
from truth.local_api import shown
from truth.of_simulators import OfSimulators

SENSOR = Entity(EntityKind.HOST, AGENT["name"])


class Alerts(Siem):
    """Every alert that there was."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.ever: list[Case] = []

    def put(self, case: Case) -> Case:
        self.ever.append(super().put(replace(case, merged_into=None, entities_at=None)))
        return self.ever[-1]


class BothLayouts(FindingsSimulator):
    """An indexer with alerts of Wazuh 4 and findings of Wazuh 5.

    It has an index of rules, and keeps what it has rendered: neither changes, and each of
    thousands of refreshes would render all alerts of an hour.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._rules: set[str] | None = None
        self._rendered: dict[str, Document] = {}

    def _matching(self, query: dict[str, Any], indices: str) -> Iterator[Document]:
        self._rules = find_rules(query)
        return super()._matching(query, indices)

    def documents(self, window: Window, indices: str = "") -> Iterator[Document]:
        for case in self.siem.versions(behind(window)):
            if self._rules is None or case.id in self._rules:
                yield replace(self._render_once(case), poisoned=case.id in self.siem.poisoned)

    def _render_once(self, case: Case) -> Document:
        name = document_id(case)
        if name not in self._rendered:
            source, shown = self.render(case), self.show(case)
            self._rendered[name] = Document(self.index, name, source, shown, case.changed_at)
        return self._rendered[name]

    def render(self, case: Case) -> dict[str, Any]:
        layout = FindingsSimulator if case.number % 2 else WazuhSimulator
        return layout.render(self, case)


def find_rules(query: dict[str, Any]) -> set[str] | None:
    """Return the rules that a query asks for, None if it asks for all."""
    for clause in query["bool"]["filter"]:
        for either in clause.get("bool", {}).get("should", []):
            if rules := either.get("terms", {}).get("rule.id"):
                return set(rules)
    return None


class Indexer(OfSimulators):
    """Alerts and findings over HTTP."""

    name = "wazuh"
    kind = Wazuh

    def simulate(self, day: Scenario, clock: Clock) -> BothLayouts:
        return BothLayouts(Alerts(clock))

    def settings(self, simulator: BothLayouts) -> dict[str, Any]:
        again = {"refresh_after": ("30m", "150m"), "overlap": "10m"}
        return {**simulator.user, "min_severity": "Informational", **again}

    def truth(self, siem: Alerts) -> dict[str, Known]:
        groups = defaultdict(list)
        for alert in siem.ever:
            groups[group_of(alert)].append(alert)
        readable = (
            [alert for alert in alerts if not alert.malformed] for alerts in groups.values()
        )
        together = zip(groups.items(), readable, strict=True)
        return {name: known(alerts, good) for (name, alerts), good in together if good}

    def unreadable(self, siem: Alerts) -> set[bytes]:
        return {
            f'"@timestamp":{{"unexpected":"{short(alert.changed_at)}"}}'.encode()
            for alert in siem.ever
            if alert.malformed
        }


def known(alerts: list[Case], readable: list[Case]) -> Known:
    """Return what is to be known of alerts of one group, of which some are readable."""
    first, last = (choose(alert.changed_at for alert in alerts) for choose in (min, max))
    latest = max(readable, key=lambda case: case.changed_at)
    count = f"{len(alerts)} times" if len(alerts) > 1 else "once"
    when = f"at {first:%Y-%m-%d %H:%M:%S} UTC"
    if len(alerts) > 1:
        when = f"from {first:%Y-%m-%d %H:%M:%S} to {last:%H:%M:%S} UTC"
    return known_of(
        latest,
        title=stored(shown(latest.title)),
        description=f"Rule {latest.id} fired {count} on {AGENT['name']} ({AGENT['id']}), {when}.",
        severity=latest.severity if isinstance(latest.severity, Severity) else Severity.MEDIUM,
        status="New",
        changed_at=last.replace(microsecond=last.microsecond // 1000 * 1000),
        entities=frozenset({SENSOR, *(entity for case in readable for entity in case.entities)}),
        alerts=len(readable),
    )


def short(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
