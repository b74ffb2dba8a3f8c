"""Conformance of the Zeek file provider."""

from __future__ import annotations

from datetime import UTC

from tocsin import Incident
from tocsin.testing import Case, LogEvent
from tocsin.testing.conformance import FileProviderConformance
from tocsin_connectors.siem.zeek import Zeek


class TestZeek(FileProviderConformance):
    """A notice has no status and no ID: its incident is its type, source and hour."""

    provider = Zeek
    file_name = "notice.log"
    severities = ()

    def external_id(self, case: Case) -> str:
        begin = case.created_at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        return f"Test::Number_{case.id}/203.0.113.9/{begin.isoformat()}"

    def is_version(self, incident: Incident, case: Case) -> bool:
        return incident.title == case.title

    def malformed(self, record: dict) -> dict:
        return super().malformed(record) | {"note": record.get("note")}

    def record(self, case: Case) -> dict:
        return {
            "ts": case.created_at.isoformat(),
            "uid": f"C{case.id}",
            "id.orig_h": "203.0.113.9",
            "id.orig_p": 40000,
            "id.resp_h": next((entity.value for entity in case.entities), "198.51.100.5"),
            "id.resp_p": 22,
            "proto": "tcp",
            "note": f"Test::Number_{case.id}",
            "msg": case.title,
            "sub": case.description,
            "actions": ["Notice::ACTION_LOG"],
            "suppress_for": 3600.0,
        }

    def log_record(self, log_event: LogEvent) -> dict:
        return {
            "ts": log_event.occurred_at.isoformat(),
            "uid": "C1",
            "id.orig_h": log_event.entities[0].value,
            "id.resp_h": "198.51.100.200",
            "proto": "tcp",
            "service": log_event.text,
        }
