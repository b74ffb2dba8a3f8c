"""Conformance of the ECS file provider."""

from __future__ import annotations

from tocsin import Severity
from tocsin.testing import Case, LogEvent
from tocsin.testing.conformance import FileProviderConformance
from tocsin_connectors.siem.ecs import Ecs

_STATUSES = {"New": "open", "Active": "acknowledged", "Closed": "closed"}


class TestEcs(FileProviderConformance):
    """Alerts of Elastic Security, each with its ID and its status."""

    provider = Ecs
    file_name = "alerts.ndjson"
    severities = (Severity.LOW, Severity.MEDIUM, Severity.HIGH, Severity.CRITICAL)

    def malformed(self, record: dict) -> dict:
        return super().malformed(record) | {"event": record["event"]}

    def record(self, case: Case) -> dict:
        return {
            "@timestamp": case.created_at.isoformat(),
            "event": {"kind": "signal"},
            "kibana.alert.uuid": case.id,
            "kibana.alert.rule.name": case.title,
            "kibana.alert.reason": case.description,
            "kibana.alert.severity": str(case.severity).lower(),
            "kibana.alert.workflow_status": _STATUSES[case.status],
            "kibana.alert.workflow_status_updated_at": case.changed_at.isoformat(),
            "source": {"ip": [entity.value for entity in case.entities]},
        }

    def log_record(self, log_event: LogEvent) -> dict:
        return {
            "@timestamp": log_event.occurred_at.isoformat(),
            "event": {"kind": "event", "dataset": "zeek.connection"},
            "message": log_event.text,
            "source": {"ip": log_event.entities[0].value},
            "destination": {"ip": "198.51.100.200"},
        }
