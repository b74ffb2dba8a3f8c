"""Client addresses of requests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from aiohttp import web

FORWARDED = "X-Forwarded-For"
UNKNOWN_ADDRESS = "unknown"
_Address = IPv4Address | IPv6Address
# Some proxies write `192.0.2.1:5555` or `[2001:db8::1]:5555`
_PORT = re.compile(r"^(\[[^]]*\]|[0-9.]+):[0-9]+$")
_SITE_BITS = 64  # an IPv6 site holds at least so many bits of addresses, all its own


class ClientAddresses:
    """Finds the source address of a request."""

    def __init__(self, trusted: Sequence[IPv4Network | IPv6Network] = ()) -> None:
        self._trusted = tuple(trusted)

    def find(self, request: web.Request) -> str:
        """Return the address that sent the request in its canonical form, or `unknown`.

        If the request comes from a trusted proxy, this is the last address in `X-Forwarded-For`
        that is not a trusted proxy. Anyone could have written the addresses before it.
        """
        address = _parse_address(request.remote or "")
        hops = ",".join(request.headers.getall(FORWARDED, [])).split(",")
        for hop in reversed(hops):
            if not self._is_trusted(address):
                break
            before = _parse_address(_PORT.sub(r"\1", hop.strip()).strip("[]"))
            if before is None:
                break
            address = before
        return UNKNOWN_ADDRESS if address is None else str(address)

    def _is_trusted(self, address: _Address | None) -> bool:
        return address is not None and any(address in network for network in self._trusted)


def address_key(address: str) -> str:
    """Return the key that limits use for an address; for an IPv6 address, its /64 network."""
    parsed = _parse_address(address) if ":" in address else None
    if not isinstance(parsed, IPv6Address):
        return address
    return f"{IPv6Address(int(parsed) >> _SITE_BITS << _SITE_BITS)}/{_SITE_BITS}"


@lru_cache(maxsize=4096)
def _parse_address(text: str) -> _Address | None:
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
