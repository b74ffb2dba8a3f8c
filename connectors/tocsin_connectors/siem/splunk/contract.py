"""Fields of findings and investigations that the mapping needs.

https://docs.splunk.com/Documentation/ES/latest/Admin/Notableindex and
https://docs.splunk.com/Documentation/ES/8.0.2/API
"""

from __future__ import annotations

from types import MappingProxyType

from tocsin import RecordContract
from tocsin_connectors.siem.splunk.mapping import ENTITY_FIELDS

_TEXTS = "string | string[]"
_FINDING = (
    *("urgency", "severity", "status", "status_group", "status_label", "status_end"),
    *("rule_title", "rule_name", "search_name", "source", "rule_description"),
    *("savedsearch_description", "_indextime", "tocsin_indexed", "tocsin_reviewed"),
    *("risk_object_type", "threat_match_field", "threat_match_value", "extract_artifacts"),
    *("annotations", "annotations.mitre_attack", "annotations.mitre_attack.mitre_technique_id"),
    *("annotations.mitre_attack.mitre_tactic", "annotations.mitre_attack.mitre_tactic_id"),
    *("mitre_technique_id", "mitre_tactic", "mitre_tactic_id", "event_id", "finding_id"),
)
FINDING_CONTRACT = RecordContract(
    required={"_time": _TEXTS},
    optional={
        **dict.fromkeys((path for paths in ENTITY_FIELDS.values() for path in paths), _TEXTS),
        **dict.fromkeys(_FINDING, _TEXTS),
    },
)
_INVESTIGATION = (
    *("urgency", "status", "investigation_id", "display_id", "update_time", "updated_time"),
    *("mod_time", "modify_time"),
)
INVESTIGATION_CONTRACT = RecordContract(
    required={"investigation_guid": _TEXTS, "create_time": f"{_TEXTS} | number", "name": _TEXTS},
    optional={
        **dict.fromkeys(_INVESTIGATION, f"{_TEXTS} | number"),
        "description": _TEXTS,
        **dict.fromkeys(
            (f"consolidated_findings.{name}" for name in ("event_id", "search_name")), _TEXTS
        ),
    },
)
CONTRACTS = MappingProxyType(
    {
        "new": FINDING_CONTRACT,
        "reviewed": FINDING_CONTRACT,
        "investigations": INVESTIGATION_CONTRACT,
    }
)
"""By kind of record."""
