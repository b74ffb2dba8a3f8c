"""Conformance of the push provider, for each format."""

from __future__ import annotations

import json

from tocsin import Incident, IncidentStatus, Severity
from tocsin.testing import Case
from tocsin.testing.conformance import PushProviderConformance, exempt
from tocsin_connectors.siem.push import Push

ALERTMANAGER = {
    "Critical": "critical",
    "High": "high",
    "Medium": "warning",
    "Informational": "info",
}
ID_HOLDS_A_TIME = "its ids hold a time as it was written"
GRAYLOG = list(map(str, Severity))


def by_title(incident: Incident, case: Case) -> bool:
    return incident.title == case.title


class TestOwnShape(PushProviderConformance):
    """A sender writes this shape for us alone, and is told of what is misspelt."""

    provider = Push

    test_unknown_members_are_ignored = exempt("a member that is not known is refused")

    def settings(self) -> dict:
        return {**super().settings(), "format": "incident"}

    def record(self, case: Case) -> dict:
        return {
            "external_id": case.id,
            "title": case.title,
            "description": case.description,
            "severity": str(case.severity),
            "status": str(case.status),
            "merged_into": case.merged_into,
            "occurred_at": case.created_at.isoformat(),
            "changed_at": case.changed_at.isoformat(),
            "entities": [
                {"kind": str(entity.kind), "value": entity.value} for entity in case.entities
            ],
        }


class TestAlertmanager(PushProviderConformance):
    """An alert fires or is resolved; when it fires, nothing says when it changed."""

    provider = Push
    statuses = (IncidentStatus.NEW, IncidentStatus.CLOSED)

    test_statuses_are_known_in_any_case = exempt("`firing` and `resolved` are all that it writes")
    test_fractions_of_any_length_are_read = exempt(ID_HOLDS_A_TIME)
    test_times_of_other_zones_are_read = exempt(ID_HOLDS_A_TIME)
    test_times_without_a_zone_are_never_local = exempt(ID_HOLDS_A_TIME)

    def settings(self) -> dict:
        return {**super().settings(), "format": "alertmanager"}

    def external_id(self, case: Case) -> str:
        return f"{case.id}/{case.created_at.isoformat()}"

    is_version = staticmethod(by_title)

    def body(self, *records: dict) -> bytes:
        return json.dumps({"version": "4", "alerts": records, "truncatedAlerts": 0}).encode()

    def record(self, case: Case) -> dict:
        severity = ALERTMANAGER.get(case.severity, str(case.severity).lower())
        addresses = {"src_ip": case.entities[0].value} if case.entities else {}
        return {
            "status": "resolved" if case.status == "Closed" else "firing",
            "labels": {"alertname": case.title, "severity": severity, **addresses},
            "annotations": {"description": case.description},
            "startsAt": case.created_at.isoformat(),
            "endsAt": case.changed_at.isoformat(),
            "generatorURL": "https://prometheus.example/graph",
            "fingerprint": case.id,
        }


class TestGraylog(PushProviderConformance):
    """An event has a number for a severity, and no status."""

    provider = Push
    batches = False

    def settings(self) -> dict:
        return {**super().settings(), "format": "graylog"}

    is_version = staticmethod(by_title)

    def body(self, *records: dict) -> bytes:
        return json.dumps(records[0]).encode()

    def record(self, case: Case) -> dict:
        known = case.severity in GRAYLOG
        return {
            "event_definition_title": case.title,
            "event_definition_description": case.description,
            "event": {
                "id": case.id,
                "timestamp": case.created_at.isoformat(),
                "timestamp_processing": case.changed_at.isoformat(),
                "message": case.title,
                "priority": GRAYLOG.index(case.severity) if known else str(case.severity),
                "fields": {"count": "38"},
                "group_by_fields": {"source_ip": case.entities[0].value} if case.entities else {},
            },
            "backlog": [],
        }
