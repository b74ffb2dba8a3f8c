"""Splunk's words for how bad a finding is and where it stands.

https://docs.splunk.com/Documentation/ES/latest/User/Howurgencyisassigned; statuses are those that
Enterprise Security comes with (`reviewstatuses`), to which customers add their own.
"""

from __future__ import annotations

from tocsin import IncidentStatus, Severity

URGENCIES = {
    "informational": Severity.INFORMATIONAL,
    "low": Severity.LOW,
    "medium": Severity.MEDIUM,
    "high": Severity.HIGH,
    "critical": Severity.CRITICAL,
}
STATUSES = {
    "0": IncidentStatus.NEW,
    "1": IncidentStatus.NEW,
    "2": IncidentStatus.ACTIVE,
    "3": IncidentStatus.ACTIVE,
    "4": IncidentStatus.CLOSED,
    "5": IncidentStatus.CLOSED,
}
"""By number: unassigned, new, in progress, pending, resolved, closed."""
STATUS_GROUPS = {
    "new": IncidentStatus.NEW,
    "open": IncidentStatus.ACTIVE,
    "closed": IncidentStatus.CLOSED,
}
"""By `status_group`, which a status of a customer's own has as well."""
STATUS_NUMBERS = {
    IncidentStatus.NEW: "1",
    IncidentStatus.ACTIVE: "2",
    IncidentStatus.CLOSED: "5",
}
"""What is written for a status of ours."""
