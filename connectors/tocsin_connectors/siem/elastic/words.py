"""Elastic's words for how bad an alert or a case is and where it stands."""

from __future__ import annotations

from tocsin import EntityKind, IncidentStatus, Severity

SEVERITIES = {
    "low": Severity.LOW,
    "medium": Severity.MEDIUM,
    "high": Severity.HIGH,
    "critical": Severity.CRITICAL,
}
STATUSES = {
    "open": IncidentStatus.NEW,
    "acknowledged": IncidentStatus.ACTIVE,
    "in-progress": IncidentStatus.ACTIVE,
    "closed": IncidentStatus.CLOSED,
}
"""Alerts are acknowledged, cases in progress; alerts of version 7 were in progress as well."""
ALERT_STATUSES = {
    IncidentStatus.NEW: "open",
    IncidentStatus.ACTIVE: "acknowledged",
    IncidentStatus.CLOSED: "closed",
}
CASE_STATUSES = ALERT_STATUSES | {IncidentStatus.ACTIVE: "in-progress"}
OBSERVABLE_TYPES = {
    "observable-type-ipv4": EntityKind.IP,
    "observable-type-ipv6": EntityKind.IP,
    "observable-type-hostname": EntityKind.HOST,
    "observable-type-domain": EntityKind.DOMAIN,
    "observable-type-url": EntityKind.URL,
    "observable-type-email": EntityKind.EMAIL,
    "observable-type-file-hash": EntityKind.FILE_HASH,
    "observable-type-file-path": EntityKind.FILE,
}
"""The types of a case's observables that come with Kibana; customers add their own."""
