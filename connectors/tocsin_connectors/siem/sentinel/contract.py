"""Fields of incidents, and of their alerts, that the mapping needs.

https://learn.microsoft.com/rest/api/securityinsights/incidents/get and
https://learn.microsoft.com/rest/api/securityinsights/incidents/list-alerts
"""

from __future__ import annotations

from types import MappingProxyType

from tocsin import RecordContract
from tocsin_connectors.siem.sentinel.mapping import RULE_NAME

_REQUIRED = ("title", "severity", "status", "lastModifiedTimeUtc")
_OPTIONAL = (
    *("incidentUrl", "providerName", "providerIncidentId", "description", "firstActivityTimeUtc"),
    "createdTimeUtc",
    *("classification", "classificationReason", "classificationComment", "labels.labelName"),
)
_LINKS = ("providerIncidentUrl", "mergedIncidentUrl")
INCIDENT_CONTRACT = RecordContract(
    required={
        "name": "string",
        **dict.fromkeys((f"properties.{name}" for name in _REQUIRED), "string"),
        "properties.incidentNumber": "number",
    },
    optional={
        **dict.fromkeys((f"properties.{name}" for name in _OPTIONAL), "string"),
        **dict.fromkeys((f"properties.additionalData.{name}" for name in _LINKS), "string"),
        "properties.additionalData.techniques": "string[]",
        "properties.additionalData.tactics": "string[]",
    },
)
_ALERT_TEXTS = ("alertDisplayName", "friendlyName", "severity", "startTimeUtc", "timeGenerated")
ALERT_CONTRACT = RecordContract(
    required={"name": "string", "properties.systemAlertId": "string"},
    optional={
        **dict.fromkeys((f"properties.{name}" for name in _ALERT_TEXTS), "string"),
        "properties.processingEndTime": "string",
        f"properties.additionalData.{RULE_NAME}": "string",
        **dict.fromkeys(("properties.techniques", "properties.tactics"), "string | string[]"),
    },
)
ALERTS = "alerts"
"""Kind of record: the alerts of incidents."""
CONTRACTS = MappingProxyType({"changed": INCIDENT_CONTRACT, ALERTS: ALERT_CONTRACT})
"""By kind of record."""
