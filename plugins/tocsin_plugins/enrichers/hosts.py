"""Hosts and addresses extracted from entity values."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from tocsin import Entity, EntityKind

_MAIL = (EntityKind.EMAIL, EntityKind.MAILBOX)
_NAMES = (EntityKind.DOMAIN, EntityKind.HOST)


def extract_host(entity: Entity) -> str | None:
    """Return the host or domain of an entity in lower case; None if it has none.

    For a URL, this is its host; for a mail address, the part behind the @.
    """
    value = entity.value
    if entity.kind is EntityKind.URL:
        with suppress(ValueError):
            return (urlsplit(value).hostname or "").rstrip(".") or None
        return None
    if entity.kind in _MAIL:
        return value.rpartition("@")[2].lower().rstrip(".") if "@" in value else None
    return value.lower().rstrip(".") or None if entity.kind in _NAMES else None


def extract_address(entity: Entity) -> IPv4Address | IPv6Address | None:
    """Return the IP address of an entity or of its host; None if there is none."""
    text = entity.value if entity.kind is EntityKind.IP else extract_host(entity)
    with suppress(ValueError):
        address = ip_address(text or "")
        return getattr(address, "ipv4_mapped", None) or address
    return None


def parent_domains(name: str) -> list[str]:
    """Return a domain name and its parents, the most specific first."""
    labels = name.split(".")
    return [".".join(labels[start:]) for start in range(len(labels))]
