"""Entities, and the canonical spelling by which two reports of one entity are the same."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import idna

from tocsin.model.vocabulary import EntityKind


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
    """A value of a certain kind that is involved in an incident, such as an IP address or a host.

    Tocsin normalizes the value's spelling so that equal values match.
    """

    kind: EntityKind
    value: str

    def __post_init__(self) -> None:
        canonical = _CANONICAL.get(self.kind, str)(self.value.strip())
        object.__setattr__(self, "value", canonical)
