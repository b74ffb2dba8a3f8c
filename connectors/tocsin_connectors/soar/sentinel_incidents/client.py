"""Client for one Sentinel workspace, through Azure Resource Manager."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from tocsin import Broken, Tools
from tocsin_connectors.microsoft.entra import EntraClient
from tocsin_connectors.microsoft.resources import (
    AUTHORIZATION_API_VERSION,
    AzureResources,
    build_incidents_path,
    build_permissions_path,
    build_workspace_path,
)
from tocsin_connectors.soar.sentinel_incidents.settings import SentinelIncidentsSettings

REQUIRED_ACTIONS = (
    "Microsoft.SecurityInsights/incidents/read",
    "Microsoft.SecurityInsights/incidents/write",
    "Microsoft.SecurityInsights/incidents/comments/read",
    "Microsoft.SecurityInsights/incidents/comments/write",
)


_API_VERSION = "2025-09-01"
"""Version of the Sentinel API: a stable one, not a `-preview`."""
_MAX_PAGES = 20


class WorkspaceClient(AzureResources):
    """Requests to one workspace; all raise the errors of `Api.request`."""

    def __init__(self, settings: SentinelIncidentsSettings, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        self.api = EntraClient(settings, tools).api(
            settings.url, settings.cloud_endpoints.management
        )
        super().__init__(self.api, _API_VERSION)
        self.workspace = build_workspace_path(
            settings.subscription, settings.resource_group, settings.workspace
        )
        self.incidents = build_incidents_path(self.workspace)

    async def members(self, path: str, version: str = _API_VERSION, **query: Any) -> list[Any]:
        """Return all members of a list."""
        found, answer = [], await self.api.get(path, **{"api-version": version}, **query)
        for _ in range(_MAX_PAGES):
            match answer.json:
                case {"value": [*members], "nextLink": str(link)} if link:
                    found += members
                    following = urlsplit(
                        link
                    )  # the link may include the port, and so another origin
                    answer = await self.api.get(f"{following.path}?{following.query}")
                case {"value": [*members]}:
                    return [*found, *members]
                case _:
                    raise Broken(f"GET {path} returned a response without a list")
        return found

    async def roles(self) -> list[Any]:
        """Return the permissions of the app's roles on the workspace."""
        return await self.members(build_permissions_path(self.workspace), AUTHORIZATION_API_VERSION)

    async def expect_incidents(self) -> None:
        """Check that the incidents of the workspace can be listed."""
        await self.api.get(self.incidents, **{"api-version": _API_VERSION, "$top": 1})
