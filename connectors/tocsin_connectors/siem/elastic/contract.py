"""Fields of detection alerts and cases that the mapping needs.

https://www.elastic.co/docs/reference/security/fields-and-object-schemas/alert-schema and
https://www.elastic.co/docs/api/doc/kibana/group/endpoint-cases
"""

from __future__ import annotations

from types import MappingProxyType

from tocsin import RecordContract
from tocsin_connectors.siem.elastic.mapping import ENTITY_FIELDS

_TEXTS = "string | string[]"
_ALERT = ("original_time", "start", "reason", "rule.description", "url")
_TECHNIQUES = ("technique.id", "technique.subtechnique.id", "tactic.id")
_THREATS = ("kibana.alert.rule.threat", "kibana.alert.rule.parameters.threat", "threat")
ALERT_CONTRACT = RecordContract(
    required={
        "_id": "string",
        "_source.@timestamp": _TEXTS,
        "_source.kibana.alert.severity": _TEXTS,
        "_source.kibana.alert.workflow_status": _TEXTS,
        "_source.kibana.alert.rule.name": _TEXTS,
    },
    optional={
        **dict.fromkeys((f"_source.kibana.alert.{name}" for name in _ALERT), _TEXTS),
        "_source.kibana.alert.workflow_status_updated_at": _TEXTS,
        **dict.fromkeys(
            (f"_source.{holder}.{name}" for holder in _THREATS for name in _TECHNIQUES), _TEXTS
        ),
        **dict.fromkeys(
            (f"_source.{path}" for paths in ENTITY_FIELDS.values() for path in paths), _TEXTS
        ),
    },
)
CASE_CONTRACT = RecordContract(
    required={
        "id": "string",
        "created_at": "string",
        "title": "string",
        "severity": "string",
        "status": "string",
    },
    optional={
        **dict.fromkeys(("incremental_id", "totalAlerts"), "number"),
        **dict.fromkeys(("updated_at", "description"), "string"),
        **dict.fromkeys(("observables.typeKey", "observables.value"), "string"),
    },
)
CONTRACTS = MappingProxyType(
    {"alerts": ALERT_CONTRACT, "new-cases": CASE_CONTRACT, "changed-cases": CASE_CONTRACT}
)
"""By kind of record."""
