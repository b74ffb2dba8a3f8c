"""IANA bootstrap registries that map names and addresses to RDAP servers (RFC 9224)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Any

from tocsin import Broken, Tools
from tocsin_plugins.rdap.client import RdapClient

_GOOD_FOR = timedelta(days=1)


class Bootstrap:
    """Finds the server for a domain or an address; IANA's registries are read once a day."""

    def __init__(self, url: str, client: RdapClient, tools: Tools) -> None:
        self._url = url
        self._client = client
        self._clock = tools.clock
        self._services: dict[str, Mapping[str, str]] = {}
        self._read_at: dict[str, datetime] = {}

    async def server_for_domain(self, name: str) -> str | None:
        """Return the base URL of the server for the longest matching suffix (section 4).

        None if the suffix's registry has no server.
        """
        services = await self._registry("dns")
        labels = name.split(".")
        endings = (".".join(labels[start:]) for start in range(len(labels)))
        return next((services[ending] for ending in endings if ending in services), None)

    async def server_for_address(self, address: IPv4Address | IPv6Address) -> str | None:
        """Return the base URL of the server for the longest matching prefix (section 5), None if
        none.
        """
        services = await self._registry(f"ipv{address.version}")
        for length in range(address.max_prefixlen, -1, -1):
            prefix = str(ip_network((address.packed, length), strict=False))
            if prefix in services:
                return services[prefix]
        return None

    async def _registry(self, name: str) -> Mapping[str, str]:
        """Return a registry: base URLs of servers by suffix or prefix."""
        now = self._clock.now()
        if name not in self._services or now - self._read_at[name] >= _GOOD_FOR:
            found = await self._client.get(f"{self._url}/{name}.json")
            self._services[name] = dict(_services(found or {}))
            self._read_at[name] = now
            if not self._services[name]:
                del self._services[name]
                raise Broken(f"{self._url}/{name}.json lists no servers")
        return self._services[name]


def _services(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield suffixes or prefixes with the base URL of their server, preferably https."""
    services = found.get("services")
    for service in services if isinstance(services, list) else []:
        match service:
            case [list(keys), list(urls), *_]:
                several = sorted(url for url in urls if isinstance(url, str))
                bases = [url for url in several if url.startswith("https://")] or several
                for key in keys:
                    if bases and isinstance(key, str):
                        yield key.lower(), bases[0].rstrip("/")
