"""The vocabulary: what the core and its plugins say to each other.

Everything here is frozen and knows nothing of databases, HTTP or vendors.
Times are aware datetimes.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Self

Json = Any  # whatever JSON can hold


class Vocabulary(StrEnum):
    """A closed list of words that compare without regard to case on input."""

    @classmethod
    def parse(cls, word: str) -> Self:
        """Return the member whose value is `word` in any case; ValueError names the valid ones."""
        for member in cls:
            if member.value.casefold() == word.casefold():
                return member
        raise ValueError(f"give one of: {', '.join(cls)}")


class Severity(Vocabulary):
    """How bad an incident is, from least to worst."""

    INFORMATIONAL = "Informational"
    LOW = "Low"
    MEDIUM = "Medium"
    HIGH = "High"
    CRITICAL = "Critical"

    @property
    def rank(self) -> int:
        """0 for Informational to 4 for Critical."""
        return _RANKS[self]


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}


class IncidentStatus(Vocabulary):
    """Where an incident stands; a vendor's own word is kept beside it as `raw_status`."""

    NEW = "New"
    ACTIVE = "Active"
    CLOSED = "Closed"


class EntityKind(Vocabulary):
    """What kind of thing an entity's value names."""

    IP = "ip"
    DOMAIN = "domain"
    URL = "url"
    FILE_HASH = "file_hash"
    EMAIL = "email"
    USER = "user"
    HOST = "host"
    PROCESS = "process"
    FILE = "file"
    CVE = "cve"
    MAILBOX = "mailbox"
    CLOUD_RESOURCE = "cloud_resource"


@lru_cache(maxsize=65_536)
def _canonical_ip(value: str) -> str:
    try:
        return str(ipaddress.ip_address(value))
    except ValueError:
        return value


_CANONICAL: dict[EntityKind, Callable[[str], str]] = {
    EntityKind.IP: _canonical_ip,
    EntityKind.DOMAIN: lambda value: value.lower().rstrip("."),
    EntityKind.FILE_HASH: str.lower,
    EntityKind.EMAIL: str.lower,
    EntityKind.MAILBOX: str.lower,
    EntityKind.CVE: lambda value: value.upper().replace("_", "-"),
}


@dataclass(frozen=True, slots=True)
class Entity:
    """A typed value that an incident is about; equal things are spelt equally."""

    kind: EntityKind
    value: str

    def __post_init__(self) -> None:
        canonical = _CANONICAL.get(self.kind, str)(self.value.strip())
        object.__setattr__(self, "value", canonical)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One detection inside an incident; `external_id` is unique within its provider."""

    external_id: str
    title: str
    severity: Severity
    occurred_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One case, alert or offense of a provider, as the provider sees it now.

    A provider hands over the same `external_id` again whenever something changed. The words and
    states of the latest version win; entities and alerts are added to those already known, and
    `occurred_at` is the earliest seen, so a provider may pass only what is new.
    """

    external_id: str
    title: str
    severity: Severity
    occurred_at: datetime
    status: IncidentStatus = IncidentStatus.NEW
    external_number: str | None = None
    description: str = ""
    raw_severity: str | None = None
    raw_status: str | None = None
    severity_assumed: bool = False
    """True where the vendor's severity was unknown and `severity` is a guess."""
    merged_into: str | None = None
    """The `external_id` of the incident that this one was merged into."""
    source_url: str | None = None
    """The incident's page at the SIEM."""
    changed_at: datetime | None = None
    """The SIEM's own time of this version; an older version never overwrites a newer one."""
    techniques: tuple[str, ...] = ()
    """ATT&CK technique ids, such as T1059.001."""
    entities: tuple[Entity, ...] = ()
    alerts: tuple[Alert, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A record that could not be read; it is kept aside with its reason and never stops a feed."""

    source: str
    location: str
    """Where in the source, in words that help to find it: `byte 10240`, `page 3, item 7`."""
    reason: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """A stretch of one source that a page accounts for: from `start` up to, not including, `end`.

    Stretches of time are given as datetimes, stretches of a file as byte offsets. `lost` says why
    a stretch could not be read, `passed_over` why it was not meant to be; where neither is given,
    it was read. A lost stretch of time is tried again later, as a backfill.
    """

    source: str
    start: datetime | int
    end: datetime | int
    lost: str | None = None
    passed_over: str | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time: from `start` up to, not including, `end`."""

    start: datetime
    end: datetime

    def __contains__(self, moment: datetime) -> bool:
        """Whether `moment` lies in the window."""
        return self.start <= moment < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What came from a SIEM, and what of the SIEM it accounts for."""

    incidents: tuple[Incident, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    covered: tuple[Covered, ...] = ()
    records: int = 0
    """How many records were read, of whatever kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Received):
    """One step of a read: what was found, and where to go on once it is stored."""

    next_position: Mapping[str, Json]


class EventType(Vocabulary):
    """The four kinds of notification; there is never a fifth."""

    INCIDENT_ALERT = "incident-alert"
    INVESTIGATION_COMPLETED = "investigation-completed"
    INVESTIGATION_FAILED = "investigation-failed"
    SCHEDULE_DISABLED = "schedule-disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened and that destinations may hear of.

    `event_type`, `timestamp` and `data` are the envelope that receivers get. `subject`
    (`incident:7`), `related` and `context` are for templates and channels and are never part of it.
    """

    id: str
    event_type: EventType
    timestamp: datetime
    data: Mapping[str, Json]
    subject: str
    related: tuple[str, ...] = ()
    context: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event on its way to one destination."""

    id: str
    event: Event
    attempt: int
    """1 for the first attempt."""
    remote: str | None
    """The id that an earlier delivery of this subject left at the destination, or None."""
    render: Callable[[str], bytes]
    """Returns the named part rendered from the destination's template; `body` is the usual one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What the receiver answered to a delivery that it accepted."""

    status: int | None = None
    response: bytes = b""
    remote_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What a plugin found when it checked its far side; no `problems` means that all is well."""

    detail: str
    problems: tuple[str, ...] = ()
