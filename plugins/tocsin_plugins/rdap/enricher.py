"""RDAP enricher (RFC 9082 queries, RFC 9083 responses)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, ClassVar
from urllib.parse import quote

from pydantic import Field

from tocsin import (
    ApiSettings,
    Duration,
    Enricher,
    Enrichment,
    Entity,
    EntityKind,
    Health,
    ServerUrl,
    Tools,
)
from tocsin_plugins.rdap.bootstrap import Bootstrap
from tocsin_plugins.rdap.client import RdapClient
from tocsin_plugins.rdap.records import registered_name, summarize_domain, summarize_network

_CHECKED = "example.com"


class RdapSettings(Enricher.Settings, ApiSettings):
    """Settings of an RDAP enricher."""

    url: ServerUrl = Field(
        default="",
        description="RDAP server for all lookups, such as https://rdap.org. Without this setting, "
        "Tocsin uses the servers that IANA lists.",
    )
    bootstrap_url: ServerUrl = Field(
        default="https://data.iana.org/rdap",
        description="URL of IANA's server registries.",
    )
    new_for: Duration = Field(
        default=timedelta(days=30),
        description="How long a domain counts as new after its registration.",
    )
    cache_for: Duration = Field(
        default=timedelta(days=7),
        ge=timedelta(0),
        description="How long Tocsin caches results. `0s` disables the cache.",
    )
    requests_per_minute: int = Field(
        default=30,
        ge=1,
        le=100_000,
        description="Maximum number of entities that Tocsin looks up per minute across all nodes.",
    )


class Rdap(Enricher[RdapSettings]):
    """Looks up the registration data of domains, and of the networks that contain addresses.

    A domain that was registered less than `new_for` ago is suspicious; everything else is unknown,
    because a registration says nothing about intent. There is no score.
    """

    name = "rdap"
    kinds: ClassVar[frozenset[EntityKind]] = frozenset({EntityKind.IP, EntityKind.DOMAIN})
    online = True

    def __init__(self, settings: Any, tools: Tools) -> None:
        """Store the arguments; perform no I/O."""
        super().__init__(settings, tools)
        self._client = RdapClient(tools, settings.timeout)
        self._bootstrap = Bootstrap(settings.bootstrap_url, self._client, tools)

    async def check(self) -> Health:
        """Return that the server for example.com responds."""
        server = await self._server(_CHECKED)
        await self._client.get(f"{server}/domain/{_CHECKED}")
        return Health(detail=f"{server} responds")

    async def enrich(self, entities: Sequence[Entity]) -> Sequence[Enrichment]:
        """Return the registration data of each entity."""
        enrichments = [await self._enrich_entity(entity) for entity in entities]
        return [enrichment for enrichment in enrichments if enrichment]

    async def _enrich_entity(self, entity: Entity) -> Enrichment | None:
        if entity.kind is EntityKind.IP:
            return await self._network(entity)
        name = registered_name(entity.value)
        server = await self._server(name) if name else None
        if not server:
            return None
        found = await self._client.get(f"{server}/domain/{quote(name, safe='')}")
        now, new_for = self.tools.clock.now(), self.settings.new_for
        return summarize_domain(entity, name, found, now - new_for) if found else None

    async def _network(self, entity: Entity) -> Enrichment | None:
        try:
            address = ip_address(entity.value)
        except ValueError:
            return None
        server = await self._server(address)
        if not server:
            return None
        found = await self._client.get(f"{server}/ip/{quote(str(address), safe=':')}")
        return summarize_network(entity, found) if found else None

    async def _server(self, of: str | IPv4Address | IPv6Address) -> str | None:
        if self.settings.url:
            return str(self.settings.url)
        if isinstance(of, str):
            return await self._bootstrap.server_for_domain(of)
        return await self._bootstrap.server_for_address(of)
