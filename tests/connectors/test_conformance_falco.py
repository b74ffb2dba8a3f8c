"""Conformance of the Falco file provider."""

from __future__ import annotations

from datetime import UTC

from tocsin import Incident, Severity
from tocsin.testing import Case, LogEvent
from tocsin.testing.conformance import FileProviderConformance
from tocsin_connectors.siem.falco import Falco

_PRIORITIES = {
    Severity.INFORMATIONAL: "Informational",
    Severity.LOW: "Notice",
    Severity.MEDIUM: "Warning",
    Severity.HIGH: "Error",
    Severity.CRITICAL: "Critical",
}


class TestFalco(FileProviderConformance):
    """An alert has no status and no incident: its incident is its rule, host and hour."""

    provider = Falco
    file_name = "events.json"

    def external_id(self, case: Case) -> str:
        begin = case.created_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        return f"Rule {case.id}/node-1/{begin.isoformat()}"

    def is_version(self, incident: Incident, case: Case) -> bool:
        return incident.description == case.title

    def malformed(self, record: dict) -> dict:
        return super().malformed(record) | {"rule": record.get("rule")}

    def record(self, case: Case) -> dict:
        return {
            "time": case.created_at.isoformat(),
            "rule": f"Rule {case.id}",
            "priority": _PRIORITIES.get(case.severity, str(case.severity)),
            "source": "syscall",
            "hostname": "node-1",
            "message": case.title,
            "tags": ["mitre_execution", "T1059"],
            "output_fields": {"fd.cip": next((entity.value for entity in case.entities), None)},
        }

    def log_record(self, log_event: LogEvent) -> dict:
        return {
            "time": log_event.occurred_at.isoformat(),
            "rule": "Outbound connection",
            "priority": "Debug",
            "source": "syscall",
            "hostname": "node-1",
            "output": log_event.text,
            "output_fields": {"fd.cip": log_event.entities[0].value, "fd.sip": "198.51.100.200"},
        }
