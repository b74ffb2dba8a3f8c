"""Incidents, their alerts and their entities."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import idna

from tocsin.model.vocabulary import EntityKind, IncidentStatus, Severity


@lru_cache(maxsize=65_536)
def _canonical_ip(value: str) -> str:
    """Return an address as RFC 5952 writes it: without a zone, and mapped IPv4 as IPv4."""
    try:
        address = ipaddress.ip_address(value.partition("%")[0])
    except ValueError:
        return value
    return str(getattr(address, "ipv4_mapped", None) or address)


@lru_cache(maxsize=65_536)
def _canonical_domain(value: str) -> str:
    """Return a domain name in lower case and ASCII (RFC 5891), as far as possible."""
    name = value.lower().rstrip(". ")
    if name.isascii():
        return name
    try:
        return idna.encode(name, uts46=True).decode()
    except (idna.IDNAError, UnicodeError):
        return name


def _canonical_email(value: str) -> str:
    user, at, domain = value.lower().rpartition("@")
    return f"{user}{at}{_canonical_domain(domain)}" if at else value.lower()


_URL_PARTS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#@]*")


def _canonical_url(value: str) -> str:
    """Return a URL with its scheme and host in lower case (RFC 3986 section 6.2.2.1)."""
    place = _URL_PARTS.match(value)
    if place is None or value[place.end() : place.end() + 1] == "@":  # a password keeps its case
        return value
    return place[0].lower() + value[place.end() :]


_CANONICAL: dict[EntityKind, Callable[[str], str]] = {
    EntityKind.IP: _canonical_ip,
    EntityKind.DOMAIN: _canonical_domain,
    EntityKind.HOST: lambda value: value.lower().rstrip(". "),
    EntityKind.URL: _canonical_url,
    EntityKind.FILE_HASH: str.lower,
    EntityKind.EMAIL: _canonical_email,
    EntityKind.MAILBOX: _canonical_email,
    EntityKind.CVE: lambda value: value.upper().replace("_", "-"),
}


@dataclass(frozen=True, slots=True)
class Entity:
    """A typed value that an incident involves; equal values are spelled the same."""

    kind: EntityKind
    value: str

    def __post_init__(self) -> None:
        canonical = _CANONICAL.get(self.kind, str)(self.value.strip())
        object.__setattr__(self, "value", canonical)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A detection inside an incident; `external_id` is unique within its provider."""

    external_id: str
    title: str
    severity: Severity
    occurred_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """A case, alert or offense of a provider, in its current version.

    A provider returns the same `external_id` again whenever something changes. Text and states of
    the latest version win; entities and alerts are added to the known ones, and `occurred_at` is
    the earliest seen, so a provider may return only what is new.
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
    """Whether `severity` is a guess, because the vendor's severity is unknown."""
    merged_into: str | None = None
    """The `external_id` of the incident that this one was merged into."""
    source_url: str | None = None
    """The incident's page in the SIEM."""
    changed_at: datetime | None = None
    """The SIEM's own time of this version; an older version never overwrites a newer one."""
    techniques: tuple[str, ...] = ()
    """ATT&CK technique IDs, such as T1059.001."""
    tactics: tuple[str, ...] = ()
    """ATT&CK tactic IDs, such as TA0006; names are stored as IDs where they are known."""
    entities: tuple[Entity, ...] = ()
    sources: tuple[Entity, ...] = ()
    """The entities from which the activity came: the client of a connection, the sender of an
    email, the machine on which a process ran. Only as reported by the SIEM, never inferred.
    """
    targets: tuple[Entity, ...] = ()
    """The entities at which the activity was directed, such as the server or the recipients."""
    alerts: tuple[Alert, ...] = ()
    only_if_stored: bool = False
    """Whether this version only updates a stored incident, such as an alert that was hidden after
    it was read.
    """
