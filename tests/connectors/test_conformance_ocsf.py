"""Conformance of the OCSF file provider."""

from __future__ import annotations

from tocsin.testing import Case, LogEvent
from tocsin.testing.conformance import FileProviderConformance
from tocsin_connectors.siem.ocsf import Ocsf

_SEVERITIES = {"Informational": 1, "Low": 2, "Medium": 3, "High": 4, "Critical": 5}
_STATUSES = {"New": 1, "Active": 2, "Closed": 5}


class TestOcsf(FileProviderConformance):
    provider = Ocsf

    def malformed(self, record: dict) -> dict:
        return super().malformed(record) | {"class_uid": record["class_uid"]}

    def record(self, case: Case) -> dict:
        return {
            "class_uid": 2005,
            "metadata": {"uid": case.id, "version": "1.8.0"},
            "time_dt": case.changed_at.isoformat(),
            "start_time_dt": case.created_at.isoformat(),
            "severity": str(case.severity),
            "severity_id": _SEVERITIES.get(case.severity, 99),
            "status": {"Active": "In Progress"}.get(case.status, str(case.status)),
            "status_id": _STATUSES[case.status],
            "finding_info_list": [{"title": case.title, "desc": case.description}],
            "observables": [
                {"type_id": 2, "type": "IP Address", "name": "source", "value": entity.value}
                for entity in case.entities
            ],
        }

    def log_record(self, log_event: LogEvent) -> dict:
        return {
            "class_uid": 4001,
            "class_name": "Network Activity",
            "time_dt": log_event.occurred_at.isoformat(),
            "message": log_event.text,
            "src_endpoint": {"ip": log_event.entities[0].value},
            "dst_endpoint": {"ip": "198.51.100.200"},
        }
