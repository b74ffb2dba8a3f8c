"""Fields of security signals that the mapping needs.

https://docs.datadoghq.com/api/latest/security-monitoring/. The values that a signal takes from its
rule and logs are in `attributes.attributes` or in `attributes.custom`.
"""

from __future__ import annotations

from types import MappingProxyType

from tocsin import RecordContract
from tocsin_connectors.siem.datadog.mapping import LOG_TABLE, SAMPLE_TABLE
from tocsin_connectors.siem.lookback import CHANGED, NEW

_CUSTOM = {
    **dict.fromkeys((*LOG_TABLE.fields, *SAMPLE_TABLE.fields), "string | string[]"),
    "entities": "string | string[]",
    **dict.fromkeys(("message", "title", "triggeringRuleCase.status"), "string"),
    **dict.fromkeys(("workflow.rule.name", "workflow.rule.id"), "string"),
    **dict.fromkeys(("workflow.first_seen", "workflow.last_seen"), "string"),
    **dict.fromkeys(
        (f"workflow.triage.{name}" for name in ("state", "archiveReason", "archiveComment")),
        "string",
    ),
    "workflow.triage.stateUpdateTimestamp": "number",
}
CONTRACT = RecordContract(
    required={"id": "string", "attributes.timestamp": "string"},
    optional={
        **dict.fromkeys(("attributes.host", "attributes.message", "attributes.status"), "string"),
        "attributes.tags": "string | string[]",
        **{
            f"attributes.{holder}.{name}": types
            for holder in ("attributes", "custom")
            for name, types in _CUSTOM.items()
        },
    },
)
CONTRACTS = MappingProxyType({NEW: CONTRACT, CHANGED: CONTRACT})
"""By kind of record."""
