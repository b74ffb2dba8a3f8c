"""Owners of addresses, from the configuration and special-range registries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from tocsin import Enricher, Enrichment, Entity, EntityKind, Tools
from tocsin_plugins.enrichers.hosts import extract_address

_Network = IPv4Network | IPv6Network

# https://www.iana.org/assignments/iana-ipv4-special-registry, -ipv6-special-registry, and multicast
SPECIAL: dict[_Network, tuple[str, str]] = {
    ip_network(network): (words, rfc)
    for network, words, rfc in (
        ("0.0.0.0/8", "this network", "RFC 791"),
        ("10.0.0.0/8", "private use", "RFC 1918"),
        ("100.64.0.0/10", "carriers' shared address space", "RFC 6598"),
        ("127.0.0.0/8", "loopback", "RFC 1122"),
        ("169.254.0.0/16", "link-local use", "RFC 3927"),
        ("172.16.0.0/12", "private use", "RFC 1918"),
        ("192.0.0.0/24", "protocol assignments", "RFC 6890"),
        ("192.0.2.0/24", "documentation", "RFC 5737"),
        ("192.88.99.0/24", "6to4 relays, which are deprecated", "RFC 7526"),
        ("192.168.0.0/16", "private use", "RFC 1918"),
        ("198.18.0.0/15", "benchmarking", "RFC 2544"),
        ("198.51.100.0/24", "documentation", "RFC 5737"),
        ("203.0.113.0/24", "documentation", "RFC 5737"),
        ("224.0.0.0/4", "multicast", "RFC 5771"),
        ("240.0.0.0/4", "future use", "RFC 1112"),
        ("255.255.255.255/32", "limited broadcast", "RFC 919"),
        ("::/128", "the unspecified address", "RFC 4291"),
        ("::1/128", "loopback", "RFC 4291"),
        ("64:ff9b::/96", "translation between IPv4 and IPv6", "RFC 6052"),
        ("64:ff9b:1::/48", "local translation between IPv4 and IPv6", "RFC 8215"),
        ("100::/64", "discarding", "RFC 6666"),
        ("2001::/32", "Teredo", "RFC 4380"),
        ("2001:2::/48", "benchmarking", "RFC 5180"),
        ("2001:db8::/32", "documentation", "RFC 3849"),
        ("2002::/16", "6to4", "RFC 3056"),
        ("3fff::/20", "documentation", "RFC 9637"),
        ("fc00::/7", "unique local use", "RFC 4193"),
        ("fe80::/10", "link-local use", "RFC 4291"),
        ("ff00::/8", "multicast", "RFC 4291"),
    )
}


def _parse_range(text: str) -> str:
    try:
        ip_network(text)
    except ValueError:
        raise ValueError("use a network such as '10.1.0.0/16'") from None
    return text


class NetworksSettings(Enricher.Settings):
    """Settings of the network enricher."""

    owners: dict[Annotated[str, AfterValidator(_parse_range)], str] = Field(
        default={},
        description='Owners of networks, such as { "10.1.0.0/16" = "Berlin office" }.',
    )


class Networks(Enricher[NetworksSettings]):
    """Shows who owns an address (according to `owners`) or what its range is reserved for."""

    name = "networks"
    kinds: ClassVar[frozenset[EntityKind]] = frozenset({EntityKind.IP})
    standing = True
    batch = 1_000

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the arguments; perform no I/O."""
        super().__init__(settings, tools)
        self._owner_of = {ip_network(key): owner for key, owner in settings.owners.items()}
        self._owned = _most_specific_first(self._owner_of)

    async def enrich(self, entities: Sequence[Entity]) -> Sequence[Enrichment]:
        """Return addresses in networks with an owner, or in special ranges."""
        return [enrichment for entity in entities if (enrichment := self._enrich_entity(entity))]

    def _enrich_entity(self, entity: Entity) -> Enrichment | None:
        address = extract_address(entity)
        if address is None:
            return None
        owned, special = _find_first(self._owned, address), _find_first(_SPECIAL_FIRST, address)
        clauses: list[str] = []
        facts: dict[str, str] = {}
        if owned:
            owner = self._owner_of[owned]
            clauses.append(f"belongs to {owner} ({owned})")
            facts |= {"owner": owner, "network": str(owned)}
        if special:
            purpose, rfc = SPECIAL[special]
            clauses.append(f"reserved for {purpose} ({special}, {rfc})")
            facts |= {"reserved_for": purpose, "reserved_range": str(special), "rfc": rfc}
        return _build_enrichment(entity, clauses, facts) if clauses else None


def _build_enrichment(entity: Entity, clauses: list[str], facts: dict[str, str]) -> Enrichment:
    tags = (("owned",) if "owner" in facts else ()) + (("reserved",) if "rfc" in facts else ())
    text = "; ".join(clauses)
    summary = f"{text[:1].upper()}{text[1:]}"
    return Enrichment(entity=entity, summary=summary, tags=tags, facts=facts)


def _most_specific_first(networks: Iterable[_Network]) -> list[_Network]:
    return sorted(networks, key=lambda network: (-network.prefixlen, str(network)))


def _find_first(
    networks: Sequence[_Network], address: IPv4Address | IPv6Address
) -> _Network | None:
    return next((network for network in networks if address in network), None)


_SPECIAL_FIRST = _most_specific_first(SPECIAL)
