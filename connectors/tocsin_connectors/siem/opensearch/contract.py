"""Fields of Security Analytics alerts and findings that the mapping needs.

https://docs.opensearch.org/latest/security-analytics/api-tools/alert-finding-api/
"""

from __future__ import annotations

from types import MappingProxyType

from tocsin import RecordContract
from tocsin_connectors.siem.lookback import CHANGED, NEW

ALERT_CONTRACT = RecordContract(
    required={
        "id": "string",
        "start_time": "string | number",
        "state": "string | number",
        "severity": "string | number",
        "trigger_name": "string",
        "finding_ids": "string | string[]",
    },
    optional={
        **dict.fromkeys(("last_notification_time", "acknowledged_time"), "string | number"),
        "end_time": "string | number",
        "error_message": "string",
    },
)
FINDING_CONTRACT = RecordContract(
    required={
        "id": "string",
        "timestamp": "string | number",
        "queries.name": "string",
        "queries.tags": "string | string[]",
        "document_list.document": "string",
    },
)
FINDINGS = "findings"
"""Kind of record: the findings of alerts."""
CONTRACTS = MappingProxyType(
    {NEW: ALERT_CONTRACT, CHANGED: ALERT_CONTRACT, FINDINGS: FINDING_CONTRACT}
)
"""By kind of record."""
