"""Fields of Defender XDR incidents that the mapping needs.

https://learn.microsoft.com/graph/api/resources/security-incident and
https://learn.microsoft.com/graph/api/resources/security-alert
"""

from __future__ import annotations

from types import MappingProxyType

from tocsin import RecordContract

_RULE = ("alertPolicyId", "detectorId")
_ALERT = ("id", "title", "severity", "createdDateTime", "firstActivityDateTime", *_RULE)
_EVIDENCE = (
    *("ipAddress", "deviceDnsName", "fileDetails.fileName", "fileDetails.filePath"),
    *("fileDetails.sha256", "imageFile.fileName", "imageFile.sha256", "url", "domainName"),
    *("userAccount.accountName", "userAccount.userPrincipalName", "primaryAddress"),
    *("recipientEmailAddress", "senderIp", "p1Sender.emailAddress", "p2Sender.emailAddress"),
    *("resourceId", "hostName"),
)
CONTRACT = RecordContract(
    required={
        "id": "string",
        "lastUpdateDateTime": "string",
        "displayName": "string",
        "severity": "string",
        "status": "string",
        "incidentWebUrl": "string",
    },
    optional={
        **dict.fromkeys(("createdDateTime", "redirectIncidentId", "description"), "string"),
        **dict.fromkeys(("classification", "determination"), "string"),
        **dict.fromkeys((f"alerts.{name}" for name in _ALERT), "string"),
        "alerts.category": "string",
        "alerts.mitreTechniques": "string | string[]",
        "alerts.evidence.roles": "string | string[]",
        **dict.fromkeys((f"alerts.evidence.{name}" for name in _EVIDENCE), "string"),
    },
)
ALERT_CONTRACT = RecordContract(
    required={
        **dict.fromkeys(("id", "lastUpdateDateTime", "title", "severity", "status"), "string"),
        "alertWebUrl": "string",
    },
    optional={
        **dict.fromkeys(("incidentId", "description", "category"), "string"),
        **dict.fromkeys(("classification", "determination"), "string"),
        **dict.fromkeys(("createdDateTime", "firstActivityDateTime", *_RULE), "string"),
        "mitreTechniques": "string | string[]",
        "evidence.roles": "string | string[]",
        **dict.fromkeys((f"evidence.{name}" for name in _EVIDENCE), "string"),
    },
)
INCIDENT_STREAM, ALERT_STREAM = "changed", "alerts"
CONTRACTS = MappingProxyType({INCIDENT_STREAM: CONTRACT, ALERT_STREAM: ALERT_CONTRACT})
"""By kind of record."""
