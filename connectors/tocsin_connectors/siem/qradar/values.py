"""Severities, statuses, offense types and times of QRadar, and what they mean in Tocsin.

https://www.ibm.com/docs/en/qsip/7.5?topic=management-offense-prioritization
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tocsin import EntityKind, IncidentStatus, Severity
from tocsin_connectors.siem.records import number, text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_PLAUSIBLE = range(10**11, 10**13)
"""From 1973 to 2286: smaller values are seconds, larger ones microseconds."""


def parse_time(record: dict[str, Any], name: str) -> datetime | None:
    """Return the time at `name`, or None. Raises ValueError if the value is implausible."""
    value = number(record, name)
    if value is None or value <= 0:
        return None
    if value not in _PLAUSIBLE:
        raise ValueError(f"{name} is not a time in milliseconds: {value}")
    return _EPOCH + value * _MILLISECOND


def to_milliseconds(moment: datetime) -> int:
    """Return milliseconds since 1970, rounded up so that earlier times do not match."""
    return -((_EPOCH - moment) // _MILLISECOND)


def text_or_number(record: dict[str, Any], name: str) -> str | None:
    """Return the text or whole number at `name` as text, or None."""
    found = number(record, name)
    return text(record, name) if found is None else str(found)


SEVERITIES: Mapping[range, Severity] = {
    range(2): Severity.INFORMATIONAL,
    range(2, 4): Severity.LOW,
    range(4, 7): Severity.MEDIUM,
    range(7, 9): Severity.HIGH,
    range(9, 11): Severity.CRITICAL,
}
"""By magnitude, which QRadar computes from severity, credibility and relevance."""
STATUSES: Mapping[str, IncidentStatus] = {
    "open": IncidentStatus.NEW,
    "hidden": IncidentStatus.ACTIVE,
    "closed": IncidentStatus.CLOSED,
}
"""Open offenses that are assigned or marked for follow-up are active."""
OFFENSE_TYPES: Mapping[str, EntityKind] = {
    "source ip": EntityKind.IP,
    "destination ip": EntityKind.IP,
    "source ipv6": EntityKind.IP,
    "destination ipv6": EntityKind.IP,
    "username": EntityKind.USER,
    "hostname": EntityKind.HOST,
    "host name": EntityKind.HOST,
    "machine id": EntityKind.HOST,
    "url": EntityKind.URL,
    "url host": EntityKind.DOMAIN,
    "domain": EntityKind.DOMAIN,
    "dns domain name": EntityKind.DOMAIN,
    "file hash": EntityKind.FILE_HASH,
    "md5 hash": EntityKind.FILE_HASH,
    "sha1 hash": EntityKind.FILE_HASH,
    "sha256 hash": EntityKind.FILE_HASH,
    "filename": EntityKind.FILE,
    "file path": EntityKind.FILE,
    "process name": EntityKind.PROCESS,
    "process path": EntityKind.PROCESS,
    "sender": EntityKind.EMAIL,
    "recipient": EntityKind.EMAIL,
    "cve": EntityKind.CVE,
    "cve id": EntityKind.CVE,
}
"""By name of the offense type: QRadar's own, and those of custom properties that it ships."""
KNOWN_TYPES: Mapping[int, str] = {
    0: "Source IP",
    1: "Destination IP",
    3: "Username",
    7: "Hostname",
    10: "Source IPv6",
    11: "Destination IPv6",
}
"""Names of types whose IDs are fixed, for consoles that do not return them."""


def parse_severity(magnitude: int | None) -> Severity | None:
    """Return the severity for a magnitude, or None if it is not from 0 to 10."""
    if magnitude is None:
        return None
    return next((severity for span, severity in SEVERITIES.items() if magnitude in span), None)
