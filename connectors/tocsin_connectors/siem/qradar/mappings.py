"""Mappings of severities, statuses, offense types and times.

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
"""From 1973 to 2286: what is less was seconds, what is more microseconds."""


def parse_time(record: dict[str, Any], name: str) -> datetime | None:
    """Return the time at `name`, None where there is none; ValueError where it cannot be one."""
    told = number(record, name)
    if told is None or told <= 0:
        return None
    if told not in _PLAUSIBLE:
        raise ValueError(f"{name} is no time in milliseconds: {told}")
    return _EPOCH + told * _MILLISECOND


def to_milliseconds(moment: datetime) -> int:
    """Return a time as QRadar has it, rounded up: what is at it or later is what is meant."""
    return -((_EPOCH - moment) // _MILLISECOND)


def text_or_number(record: dict[str, Any], name: str) -> str | None:
    """Return the text or the whole number at `name` as text, None where there is neither."""
    found = number(record, name)
    return text(record, name) if found is None else str(found)


SEVERITIES: Mapping[range, Severity] = {
    range(2): Severity.INFORMATIONAL,
    range(2, 4): Severity.LOW,
    range(4, 7): Severity.MEDIUM,
    range(7, 9): Severity.HIGH,
    range(9, 11): Severity.CRITICAL,
}
"""By magnitude, which QRadar makes of severity, credibility and relevance."""
STATUSES: Mapping[str, IncidentStatus] = {
    "open": IncidentStatus.NEW,
    "hidden": IncidentStatus.ACTIVE,
    "closed": IncidentStatus.CLOSED,
}
"""An open offense that somebody was assigned, or that is marked for follow-up, is active."""
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
"""By the name of an offense type: those of QRadar's own, and of custom properties that it ships."""
KNOWN_TYPES: Mapping[int, str] = {
    0: "Source IP",
    1: "Destination IP",
    3: "Username",
    7: "Hostname",
    10: "Source IPv6",
    11: "Destination IPv6",
}
"""The names of types that have the same ids everywhere, where a console does not tell them."""


def parse_severity(magnitude: int | None) -> Severity | None:
    """Return how bad an offense of this magnitude is; None where it is not from 0 to 10."""
    if magnitude is None:
        return None
    return next((it for span, it in SEVERITIES.items() if magnitude in span), None)
