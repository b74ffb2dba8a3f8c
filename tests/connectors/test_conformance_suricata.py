"""Conformance of the Suricata file provider."""

from __future__ import annotations

from datetime import UTC

from tocsin import Incident, Severity
from tocsin.testing import Case, LogEvent
from tocsin.testing.conformance import FileProviderConformance
from tocsin_connectors.siem.suricata import Suricata

_SEVERITIES = {"High": "Major", "Low": "Minor"}


class TestSuricata(FileProviderConformance):
    """An alert has no status and no id: its incident is its signature, source and hour."""

    provider = Suricata
    file_name = "eve.json"
    severities = (Severity.INFORMATIONAL, Severity.LOW, Severity.HIGH, Severity.CRITICAL)

    def external_id(self, case: Case) -> str:
        begin = case.created_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        return f"1:{case.id}/203.0.113.9/{begin.isoformat()}"

    def is_version(self, incident: Incident, case: Case) -> bool:
        return incident.title == case.title

    def malformed(self, record: dict) -> dict:
        return super().malformed(record) | {"event_type": record["event_type"]}

    def record(self, case: Case) -> dict:
        severity = _SEVERITIES.get(case.severity, str(case.severity))
        return {
            "timestamp": case.created_at.strftime("%Y-%m-%dT%H:%M:%S.%f%z"),
            "event_type": "alert",
            "flow_id": int(case.id),
            "src_ip": "203.0.113.9",
            "dest_ip": next((entity.value for entity in case.entities), "198.51.100.5"),
            "proto": "TCP",
            "alert": {
                "gid": 1,
                "signature_id": int(case.id),
                "signature": case.title,
                "category": case.description,
                "metadata": {"signature_severity": [severity]},
            },
        }

    def log_record(self, log_event: LogEvent) -> dict:
        return {
            "timestamp": log_event.occurred_at.strftime("%Y-%m-%dT%H:%M:%S.%f%z"),
            "event_type": "http",
            "src_ip": log_event.entities[0].value,
            "dest_ip": "198.51.100.200",
            "http": {"hostname": "shop.example", "url": "/", "http_user_agent": log_event.text},
        }
