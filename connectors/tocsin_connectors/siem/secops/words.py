"""Google's words for how bad a detection is and where it stands.

https://cloud.google.com/chronicle/docs/reference/rest/v1alpha/Noun
"""

from __future__ import annotations

from collections.abc import Mapping

from tocsin import IncidentStatus, Severity

SEVERITIES: Mapping[str, Severity] = {
    "info": Severity.INFORMATIONAL,
    "informational": Severity.INFORMATIONAL,
    "low": Severity.LOW,
    "medium": Severity.MEDIUM,
    "high": Severity.HIGH,
    "critical": Severity.CRITICAL,
}
UNSPECIFIED = frozenset({"unknown_severity", "unspecified", "priority_unspecified"})
"""Words that say nothing, so that the next place counts."""
STATUSES: Mapping[str, IncidentStatus] = {
    "new": IncidentStatus.NEW,
    "open": IncidentStatus.NEW,
    "reviewed": IncidentStatus.ACTIVE,
    "closed": IncidentStatus.CLOSED,
}
STATUS_WORDS: Mapping[IncidentStatus, str] = {
    IncidentStatus.NEW: "NEW",
    IncidentStatus.ACTIVE: "REVIEWED",
    IncidentStatus.CLOSED: "CLOSED",
}


def parse_severity(word: str | None) -> Severity | None:
    """Return the severity of a word such as `PRIORITY_HIGH` or `High`, None for others."""
    return SEVERITIES.get((word or "").casefold().removeprefix("priority_"))


def parse_status(word: str | None) -> IncidentStatus | None:
    """Return where a detection stands by a word of Google's, None for others."""
    return STATUSES.get((word or "").casefold())
