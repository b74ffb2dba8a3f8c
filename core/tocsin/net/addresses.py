"""IP address ranges, and the policy over them.

`ipaddress.is_global` does not serve: it is true for multicast, for Azure's wire server and for
several IPv6 addresses that embed a private IPv4 address.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# IANA IPv4 Special-Purpose Address Registry, with multicast (224/4) and the reserved rest (240/4).
_SPECIAL_IPV4 = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_GLOBAL_IPV6 = IPv6Network("2000::/3")  # RFC 4291 section 2.4; IANA allocates from nothing else
# Inside it: protocol assignments with Teredo, documentation twice, 6to4.
_SPECIAL_IPV6 = tuple(
    IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052 section 2.1

# Cloud metadata services, which return credentials without authentication.
_METADATA: frozenset[Address] = frozenset(
    ip_address(address)
    for address in (
        "169.254.169.254",  # AWS, Azure, Google Cloud and most others
        "169.254.170.2",  # AWS ECS tasks
        "100.100.100.200",  # Alibaba Cloud
        "168.63.129.16",  # Azure's wire server
        "192.0.0.192",  # Oracle Cloud
        "fd00:ec2::254",  # AWS
        "fd20:ce::254",  # Google Cloud
    )
)


def unwrap(address: Address) -> Address:
    """Return the IPv4 address inside an IPv4-mapped or NAT64 address, else `address`."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return _last_four_bytes(address)
    return address


def _last_four_bytes(address: IPv6Address) -> IPv4Address:
    return IPv4Address(address.packed[-4:])


def _readings(address: Address) -> Iterator[Address]:
    """Yield `address` and every IPv4 address that a translator may derive from it."""
    yield address
    if isinstance(address, IPv6Address):
        yield _last_four_bytes(address)
        if address.sixtofour is not None:
            yield address.sixtofour


def is_metadata(address: Address) -> bool:
    """Return whether a cloud metadata service may respond at `address`."""
    return any(reading in _METADATA for reading in _readings(address))


def is_public(address: Address) -> bool:
    """Return whether `address` is on the public Internet, and not a metadata service."""
    address = unwrap(address)
    if is_metadata(address):
        return False
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_IPV4)
    return address in _GLOBAL_IPV6 and not any(address in network for network in _SPECIAL_IPV6)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressPolicy:
    """Addresses that requests may reach; metadata services are never among them."""

    networks: tuple[Network, ...] = ()
    """Networks that are always permitted."""
    public: bool
    """Whether public addresses are permitted."""
    private: bool = False
    """Whether all other addresses are permitted."""

    @property
    def allows_any(self) -> bool:
        """Whether any address is permitted."""
        return bool(self.networks) or self.public or self.private

    def allows(self, address: Address) -> bool:
        """Return whether `address` is permitted."""
        if is_metadata(address) or getattr(address, "scope_id", None):
            return False
        address = unwrap(address)
        if any(address in network for network in self.networks):
            return True
        return self.public if is_public(address) else self.private
