"""Simulator of a Wazuh indexer: immutable alerts in the layout of 4.x or 5.x."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.connectors.indices.simulator import Document, IndexSimulator, behind, short

from tocsin import EntityKind, Severity, Window
from tocsin.testing import Case, LogEvent

AGENT = {"id": "001", "name": "sensor"}
LEVELS = {
    Severity.INFORMATIONAL: 3,
    Severity.LOW: 5,
    Severity.MEDIUM: 10,
    Severity.HIGH: 12,
    Severity.CRITICAL: 15,
}
OF_4 = {
    EntityKind.IP: "srcip",
    EntityKind.USER: "dstuser",
    EntityKind.HOST: "hostname",
    EntityKind.DOMAIN: "domain",
    EntityKind.FILE_HASH: "sha256",
    EntityKind.FILE: "file",
    EntityKind.URL: "url",
}
OF_5 = {
    EntityKind.IP: "source.ip",
    EntityKind.USER: "user.name",
    EntityKind.HOST: "host.name",
    EntityKind.DOMAIN: "dns.question.name",
    EntityKind.FILE_HASH: "file.hash.sha256",
    EntityKind.FILE: "file.path",
    EntityKind.URL: "url.full",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def group_of(case: Case, window: timedelta = timedelta(hours=1)) -> str:
    """Return the id of the incident that a version of a case belongs to: the case is the rule."""
    begin = _EPOCH + (case.changed_at - _EPOCH) // window * window
    rule = case.id.replace("%", "%25").replace("/", "%2F")
    return f"{rule}/{AGENT['id']}/{AGENT['name']}/{begin.isoformat()}"


class WazuhSimulator(IndexSimulator):
    """Wazuh 4.x: each version of a case is an alert of its own, of a rule of its own."""

    index = "wazuh-alerts-4.x-2026.11.21"

    def documents(self, window: Window, indices: str = "") -> Iterator[Document]:
        for case in self.siem.versions(behind(window)):
            yield Document(
                index=self.index,
                id=document_id(case),
                source=self.render(case),
                shown=self.show(case),
                at=case.changed_at,
                poisoned=case.id in self.siem.poisoned,
            )
        for log_event in self._log():
            if log_event.occurred_at in window:
                yield Document(
                    index=self.index,
                    id=f"logged-{log_event.id}",
                    source=self.render_log_event(log_event),
                    shown=self.show_log_event(log_event),
                    at=log_event.occurred_at,
                )

    def _log(self) -> list[LogEvent]:
        return self.siem._log

    def render_log_event(self, log_event: LogEvent) -> dict[str, Any]:
        case = Case(
            id=log_event.id,
            number=int(log_event.id),
            title=log_event.text,
            severity=Severity.LOW,
            created_at=log_event.occurred_at,
            changed_at=log_event.occurred_at,
            entities=log_event.entities,
        )
        return self.render(case)

    def render(self, case: Case) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for entity in case.entities:
            data.setdefault(OF_4.get(entity.kind, "other"), []).append(entity.value)
        return {
            "@timestamp": short(case.changed_at),
            "timestamp": short(case.changed_at),
            "id": f"{case.changed_at.timestamp():.0f}.{case.number}",
            "rule": {
                "id": case.id,
                "description": case.title,
                "level": LEVELS.get(case.severity, case.severity),
                "groups": ["syslog"],
                "firedtimes": 1,
            },
            "agent": dict(AGENT),
            "manager": {"name": "manager-1"},
            "decoder": {"name": "sshd"},
            "full_log": case.description,
            "location": "/var/log/auth.log",
            "data": data,
        }


class FindingsSimulator(WazuhSimulator):
    """Wazuh 5.x: findings, with dotted names beside nested ones."""

    index = ".ds-wazuh-findings-v5-security-000001"

    def render(self, case: Case) -> dict[str, Any]:
        alert = super().render(replace(case, entities=()))
        known = case.severity in LEVELS
        document: dict[str, Any] = {
            "@timestamp": alert["@timestamp"],
            "event": {"original": case.description, "action": "authentication-failure"},
            "wazuh": {
                "agent": dict(AGENT),
                "rule": {
                    "id": case.id,
                    "title": case.title,
                    "level": case.severity.lower() if known else case.severity,
                    "tags": ["attack.t1110"],
                },
                "event": {"id": alert["id"]},
            },
        }
        for entity in case.entities:
            document.setdefault(OF_5.get(entity.kind, "other"), []).append(entity.value)
        return document


def document_id(case: Case) -> str:
    """Return the `_id` of a version of a case."""
    return f"{case.number}-{case.id}-{case.changed_at.timestamp():.6f}"
