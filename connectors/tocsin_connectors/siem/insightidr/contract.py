"""Fields of investigations and their alerts that the mapping needs.

https://help.rapid7.com/insightidr/en-us/api/v2/docs.html and
https://docs.rapid7.com/insightidr/api/alert-triage/
"""

from __future__ import annotations

from types import MappingProxyType

from tocsin import RecordContract
from tocsin_connectors.siem.lookback import CHANGED, NEW

INVESTIGATION_CONTRACT = RecordContract(
    required={
        "rrn": "string",
        **dict.fromkeys(("title", "created_time", "priority", "status"), "string"),
    },
    optional={
        **dict.fromkeys(("first_alert_time", "latest_alert_time", "last_accessed"), "string"),
        **dict.fromkeys(("source", "disposition"), "string"),
        "tags": "string[]",
    },
)
ALERT_CONTRACT = RecordContract(
    required={"id": "string"},
    optional={
        **dict.fromkeys(("title", "alert_type", "first_event_time", "created_time"), "string"),
        **dict.fromkeys((f"detection_rule_rrn.rule_{name}" for name in ("name", "rrn")), "string"),
        "details.priority": "string",
        "details.rule.mitre_tcodes": "string[]",
        "details.rule_keys_of_interest.key": "string",
        "details.rule_keys_of_interest.values": "string[]",
        "details.organization.product_token": "string",
        "evidence.data": "object | string",
    },
)
ALERTS = "alerts"
"""Kind of record: the alerts of investigations."""
CONTRACTS = MappingProxyType(
    {NEW: INVESTIGATION_CONTRACT, CHANGED: INVESTIGATION_CONTRACT, ALERTS: ALERT_CONTRACT}
)
"""By kind of record."""
