"""Patterns of entities: networks, address ranges and names with wildcards."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from itertools import takewhile

from tocsin.model import Entity, EntityKind

_NAMES = (EntityKind.HOST, EntityKind.DOMAIN)
_LEAST_LITERAL = 2
_NAME = re.compile(r"[\w.*$@\\-]{1,253}")
_WILDCARD_ADDRESS = re.compile(r"((?:[0-9]{1,3}\.){1,3})\*(?:\.\*)*")

_Address = IPv4Address | IPv6Address


@dataclass(frozen=True)
class EntityPattern:
    """A pattern that matches entities; create one with `parse`."""

    text: str
    """The pattern as people usually write it, such as `198.51.100.0/24`,
    `198.51.100.1-198.51.100.9` or `web-*`."""
    kinds: tuple[EntityKind, ...]
    """The entity kinds that the pattern can match."""

    @classmethod
    def parse(cls, text: str, kinds: Iterable[EntityKind] = _NAMES) -> EntityPattern:
        """Parse a pattern; a name with wildcards matches only entities of these `kinds`.

        A pattern is a network (`198.51.100.0/24`, `2001:db8::/32`, with or without host bits), a
        range (`198.51.100.1-198.51.100.9`, `198.51.100.1-9`), an address that ends in wildcards
        (`198.51.*`), or a name with wildcards (`web-*`, `*.corp.example`). Raises ValueError for
        anything else.
        """
        text = text.strip()
        if bounds := _parse_bounds(text):
            return cls(_format_bounds(*bounds), (EntityKind.IP,))
        if "*" not in text or not _NAME.fullmatch(text):
            raise ValueError("use a network, an address range or a name with *")
        if sum(letter.isalnum() for letter in text) < _LEAST_LITERAL:
            raise ValueError("use at least two letters or digits in addition to *")
        return cls(re.sub(r"\*+", "*", text), tuple(kinds))

    @cached_property
    def bounds(self) -> tuple[_Address, _Address] | None:
        """The first and last address; None for names."""
        return _parse_bounds(self.text)

    @cached_property
    def beginning(self) -> str:
        """The prefix that all matching values share, in lowercase; can be empty."""
        if self.bounds is None:
            return self.text.partition("*")[0].lower()
        first, last = self.bounds
        mark = "." if isinstance(first, IPv4Address) else ":"
        pairs = list(zip(_split_groups(first), _split_groups(last), strict=True))
        # IPv6 writes runs of zeros as `::`, so nothing is known from the first zero on
        common = takewhile(lambda p: p[0] == p[1] and (mark == "." or p[0] != "0"), pairs)
        return "".join(f"{group}{mark}" for group, _ in list(common)[: len(pairs) - 1])

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        parts = (re.escape(part) for part in self.text.split("*"))
        return re.compile(".*".join(parts), re.IGNORECASE | re.DOTALL)

    def matches(self, entity: Entity) -> bool:
        """Return whether an entity matches."""
        if entity.kind not in self.kinds:
            return False
        if self.bounds is None:
            return self._expression.fullmatch(entity.value) is not None
        first, last = self.bounds
        try:
            address = ip_address(entity.value)
        except ValueError:
            return False
        return address.version == first.version and int(first) <= int(address) <= int(last)


def _parse_bounds(text: str) -> tuple[_Address, _Address] | None:
    """Return the first and last address of a network or range; None for other text.

    Raises ValueError for a range that ends before it begins.
    """
    if wildcard := _WILDCARD_ADDRESS.fullmatch(text):
        octets = wildcard[1].count(".")
        text = f"{wildcard[1]}{'0.' * (4 - octets)}".rstrip(".") + f"/{8 * octets}"
    one, dash, other = text.partition("-")
    try:
        if not dash:
            return _parse_network(text) if "/" in text else None
        if other.isdecimal():
            other = f"{one.rpartition('.')[0]}.{other}"
        first, last = _unmapped(ip_address(one.strip())), _unmapped(ip_address(other.strip()))
    except ValueError:
        return None
    if first.version != last.version or int(first) > int(last):
        raise ValueError(f"the range ends at {last}, before {first}")
    return first, last


def _parse_network(text: str) -> tuple[_Address, _Address]:
    network = ip_network(text, strict=False)
    return _unmapped(network[0]), _unmapped(network[-1])


def _unmapped(address: _Address) -> _Address:
    """Return an IPv4-mapped IPv6 address as IPv4, as entities are stored."""
    return getattr(address, "ipv4_mapped", None) or address


def _format_bounds(first: _Address, last: _Address) -> str:
    """Return a range as the network that it is, or else as `first-last`."""
    size = int(last) - int(first) + 1
    width = first.max_prefixlen - (size.bit_length() - 1)
    if size & (size - 1) == 0 and int(first) % size == 0:
        return f"{first}/{width}"
    return f"{first}-{last}"


def _split_groups(address: _Address) -> list[str]:
    if isinstance(address, IPv4Address):
        return str(address).split(".")
    return [group.lstrip("0") or "0" for group in address.exploded.split(":")]
