"""Azure Resource Manager, as far as a workspace of Sentinel is concerned."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from tocsin import Broken, Tools
from tocsin_connectors.microsoft.entra import Entra
from tocsin_connectors.microsoft.resources import (
    AUTHORIZATION,
    Resources,
    incidents_path,
    roles_path,
    workspace_path,
)
from tocsin_connectors.soar.sentinel_incidents.settings import SentinelSettings

_SENTINEL = "2025-09-01"
"""The version of the API of Sentinel: stable, unlike those that end in `-preview`."""
_MOST_PAGES = 20


class Azure(Resources):
    """Requests to one workspace; all of them raise what `Api.request` raises."""

    def __init__(self, settings: SentinelSettings, tools: Tools) -> None:
        """Keep what is needed; do no I/O."""
        self.api = Entra(settings, tools).api(settings.url, settings.of_cloud.management)
        super().__init__(self.api, _SENTINEL)
        self.workspace = workspace_path(
            settings.subscription, settings.resource_group, settings.workspace
        )
        self.incidents = incidents_path(self.workspace)

    async def members(self, path: str, version: str = _SENTINEL, **query: Any) -> list[Any]:
        """Return what a list has, over its pages."""
        found, answer = [], await self.api.get(path, **{"api-version": version}, **query)
        for _ in range(_MOST_PAGES):
            match answer.json:
                case {"value": [*members], "nextLink": str(link)} if link:
                    found += members
                    following = urlsplit(link)  # which may name the port, and so another origin
                    answer = await self.api.get(f"{following.path}?{following.query}")
                case {"value": [*members]}:
                    return [*found, *members]
                case _:
                    raise Broken(f"GET {path} answered without a list")
        return found

    async def roles(self) -> list[Any]:
        """Return what the app's roles on the workspace allow."""
        return await self.members(roles_path(self.workspace), AUTHORIZATION)

    async def expect_incidents(self) -> None:
        """Return where the workspace shows its incidents."""
        await self.api.get(self.incidents, **{"api-version": _SENTINEL, "$top": 1})
