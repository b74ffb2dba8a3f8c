"""List entries, matched exactly, by network or by parent domain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TypeAlias

from tocsin import Entity, EntityKind
from tocsin_plugins.enrichers.hosts import extract_address, extract_host, parent_domains

_Network: TypeAlias = IPv4Network | IPv6Network

_HASH = re.compile(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{128}", re.IGNORECASE)
_CVE = re.compile(r"CVE-\d{4}-\d{4,}", re.IGNORECASE)
_MAIL = re.compile(r"[^@\s/]+@[^@\s/]+")
_DOMAIN = re.compile(r"(\*?\.)?([\w-]{1,63}\.)+[^\W\d][\w-]{1,62}\.?")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListEntry:
    """A value on a list."""

    kind: EntityKind
    value: str
    """For an IP, an address or a network."""
    description: str = ""
    tags: tuple[str, ...] = ()
    score: int | None = None
    valid_until: datetime | None = None
    """The expiry of the entry."""


def detect_kind(value: str) -> EntityKind:
    """Return the entity kind that a value looks like; ValueError if it is ambiguous."""
    with suppress(ValueError):
        ip_network(value)
        return EntityKind.IP
    for pattern, kind in (
        (_URL, EntityKind.URL),
        (_MAIL, EntityKind.EMAIL),
        (_HASH, EntityKind.FILE_HASH),
        (_CVE, EntityKind.CVE),
        (_DOMAIN, EntityKind.DOMAIN),
    ):
        if pattern.fullmatch(value):
            return kind
    raise ValueError(f"unknown kind of value {value!r:.80}; add a column `kind`")


class ListIndex:
    """A list with fast lookups, whatever its length."""

    def __init__(self, entries: Iterable[ListEntry], skipped: int = 0) -> None:
        self.skipped = skipped
        """The number of unusable lines or indicators."""
        self._exact: dict[Entity, ListEntry] = {}
        self._networks: dict[_Network, ListEntry] = {}
        for entry in entries:
            self._add(entry)
        self._lengths = sorted(
            {(network.version, network.prefixlen) for network in self._networks}, reverse=True
        )

    def __len__(self) -> int:
        return len(self._exact) + len(self._networks)

    def expired(self, now: datetime) -> int:
        """Return the number of expired entries."""
        entries = (*self._exact.values(), *self._networks.values())
        return sum(not _is_valid(entry, now) for entry in entries)

    def find(self, entity: Entity, now: datetime) -> ListEntry | None:
        """Return the best matching entry: the value itself, its address or host, or a parent of
        these.
        """
        return next((entry for entry in self._fitting(entity) if _is_valid(entry, now)), None)

    def _add(self, entry: ListEntry) -> None:
        if entry.kind is EntityKind.IP:
            network = ip_network(entry.value, strict=False)
            self._networks.setdefault(network, entry)
            return
        value = entry.value
        if entry.kind is EntityKind.DOMAIN:
            value = value.removeprefix("*").removeprefix(".")
        self._exact.setdefault(Entity(entry.kind, value), entry)

    def _fitting(self, entity: Entity) -> Iterator[ListEntry]:
        if found := self._exact.get(entity):
            yield found
        if address := extract_address(entity):
            for version, length in self._lengths:
                if version == address.version:
                    network = ip_network((address.packed, length), strict=False)
                    if found := self._networks.get(network):
                        yield found
        elif host := extract_host(entity):
            for name in parent_domains(host):
                if found := self._exact.get(Entity(EntityKind.DOMAIN, name)):
                    yield found


def _is_valid(entry: ListEntry, now: datetime) -> bool:
    return entry.valid_until is None or entry.valid_until > now
