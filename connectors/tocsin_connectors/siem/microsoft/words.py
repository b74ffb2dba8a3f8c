"""Microsoft's words for how bad something is, and its times, in Sentinel and in Defender XDR."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tocsin import Severity
from tocsin_connectors.siem.records import parse_utc, text

# https://learn.microsoft.com/rest/api/securityinsights/incidents/get#incidentseverity and
# https://learn.microsoft.com/graph/api/resources/security-incident
_SEVERITIES: Mapping[str, Severity] = {
    "informational": Severity.INFORMATIONAL,
    "low": Severity.LOW,
    "medium": Severity.MEDIUM,
    "high": Severity.HIGH,
}
_NEVER = "0001-"
"""How .NET writes a time that was never set."""


def parse_severity(word: str | None) -> Severity | None:
    """Return the severity that a word means, None for any other, such as `unknown`."""
    return _SEVERITIES.get((word or "").casefold())


def parse_time(record: dict[str, Any], member: str) -> datetime | None:
    """Return the time at a member, None where it was never set; ValueError where it is no time."""
    moment = text(record, member)
    return parse_utc(moment) if moment and not moment.startswith(_NEVER) else None
