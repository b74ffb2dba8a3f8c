"""CrowdStrike's words for how bad an alert is and where it stands.

https://www.falconpy.io/Service-Collections/Alerts.html
"""

from __future__ import annotations

from collections.abc import Mapping

from tocsin import IncidentStatus, Severity

SEVERITIES: Mapping[str, Severity] = {
    "informational": Severity.INFORMATIONAL,
    "low": Severity.LOW,
    "medium": Severity.MEDIUM,
    "high": Severity.HIGH,
    "critical": Severity.CRITICAL,
}
_MIN_SCORES: Mapping[int, Severity] = {
    80: Severity.CRITICAL,
    60: Severity.HIGH,
    40: Severity.MEDIUM,
    20: Severity.LOW,
    1: Severity.INFORMATIONAL,
}
"""From which number on; the highest that is not above it counts."""
_MAX_SCORE = 100
STATUSES: Mapping[str, IncidentStatus] = {
    "new": IncidentStatus.NEW,
    "reopened": IncidentStatus.NEW,
    "in_progress": IncidentStatus.ACTIVE,
    "closed": IncidentStatus.CLOSED,
}
STATUS_WORDS: Mapping[IncidentStatus, str] = {
    IncidentStatus.NEW: "new",
    IncidentStatus.ACTIVE: "in_progress",
    IncidentStatus.CLOSED: "closed",
}


def parse_severity(word: str | None, number: int | None) -> Severity | None:
    """Return the severity by its word, else by its number; None where neither is known."""
    if found := SEVERITIES.get((word or "").casefold()):
        return found
    if number is None or number > _MAX_SCORE:
        return None
    return next((severity for begin, severity in _MIN_SCORES.items() if number >= begin), None)
