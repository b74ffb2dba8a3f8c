"""Fields of cases and alerts that the mapping needs.

https://developers.exabeam.com/exabeam/reference/threat-center-search-cases. Only cases have a
stage. Cases and alerts have differently named IDs and times.
"""

from __future__ import annotations

from types import MappingProxyType

from tocsin import RecordContract
from tocsin_connectors.siem.exabeam.mapping import ENTITY_TABLE
from tocsin_connectors.siem.lookback import CHANGED, NEW

_TIME = "number | string"
_OPTIONAL = {
    **dict.fromkeys(("caseId", "alertId", "stage"), "string"),
    **dict.fromkeys(("caseCreationTimestamp", "alertCreationTimestamp"), _TIME),
    "caseNumber": "number | string",
    "approxLogTime": _TIME,
    "lastModifiedTimestamp": _TIME,
    **dict.fromkeys(ENTITY_TABLE.fields, "string | string[]"),
    **dict.fromkeys(("alertDescriptionRt", "closedReason", "supportingReason"), "string"),
    **dict.fromkeys(("mitres.tacticKey", "mitres.techniqueKey"), "string"),
    **dict.fromkeys(("rules.ruleId", "rules.ruleName", "rules.ruleReason"), "string"),
    "rules.ruleSeverity": "string",
    "rules.approxLogTime": _TIME,
    "tags": "string[]",
}
CONTRACT = RecordContract(
    required=dict.fromkeys(("alertName", "priority"), "string"), optional=_OPTIONAL
)
CONTRACTS = MappingProxyType({NEW: CONTRACT, CHANGED: CONTRACT})
"""By kind of record."""
