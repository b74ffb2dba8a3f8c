"""Sentinel's API over Azure Resource Manager, of one workspace.

https://learn.microsoft.com/rest/api/securityinsights/incidents
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import quote, urlsplit

from tocsin import ApiResponse, Broken
from tocsin_connectors.microsoft.entra import EntraClient
from tocsin_connectors.microsoft.resources import (
    AUTHORIZATION_API_VERSION,
    AzureResource,
    AzureResources,
    build_incidents_path,
    build_permissions_path,
    build_workspace_path,
)
from tocsin_connectors.siem.microsoft.kql import format_second
from tocsin_connectors.siem.sentinel.settings import SentinelSettings
from tocsin_connectors.siem.sentinel.walk import MODIFIED, SentinelCursor

CHANGE_FIELD = f"properties/{MODIFIED}"
_WORKSPACES_API_VERSION = "2023-09-01"


class SentinelClient:
    """Requests to one workspace; all of them raise what `Api.request` raises."""

    def __init__(self, settings: SentinelSettings, entra: EntraClient) -> None:
        """Keep what is needed; do no I/O."""
        self._version = {"api-version": settings.api_version}
        self._api = entra.api(settings.url, settings.cloud_endpoints.management)
        self._resources = AzureResources(self._api, settings.api_version)
        self._path = build_workspace_path(
            settings.subscription, settings.resource_group, settings.workspace
        )
        self._incidents = build_incidents_path(self._path)

    async def first(self) -> AzureResource | None:
        """Return any incident, None where there is none yet."""
        answer = await self._api.get(self._incidents, **self._version, **{"$top": 1})
        return next(iter(_parse_list(answer, "value", self._incidents)), None)

    async def changed(
        self, step: SentinelCursor, end: datetime, limit: int
    ) -> tuple[Sequence[AzureResource], str | None, ApiResponse]:
        """Return a page of the incidents that were modified before `end`, the oldest first.

        With it comes the path and query of the next page, None at the last one, and the answer.
        """
        query = {
            **self._version,
            "$filter": f"{CHANGE_FIELD} ge {step.since} and {CHANGE_FIELD} lt {format_second(end)}",
            "$orderby": f"{CHANGE_FIELD} asc",
            "$top": limit,
        }
        if step.link is None:
            answer = await self._api.get(self._incidents, **query)
        else:
            answer = await self._api.get(step.link)
        return _parse_list(answer, "value", self._incidents), _parse_next_link(answer), answer

    async def incident(self, name: str) -> AzureResource | None:
        """Return an incident, None where there is none of that name."""
        return await self._resources.get(self._of(name))

    async def alerts(self, name: str) -> Sequence[AzureResource]:
        """Return the alerts of an incident."""
        return await self._ask(f"{self._of(name)}/alerts", "value")

    async def entities(self, name: str) -> Sequence[AzureResource]:
        """Return what an incident is about."""
        return await self._ask(f"{self._of(name)}/entities", "entities")

    async def comment(self, name: str, comment: str) -> AzureResource | None:
        """Return a comment to an incident, None where there is none of that name."""
        return await self._resources.get(f"{self._of(name)}/comments/{comment}")

    async def write_comment(self, name: str, comment: str, message: str) -> bool:
        """Make a comment; False where it conflicts with what is there."""
        path = f"{self._of(name)}/comments/{comment}"
        return await self._resources.put(path, {"properties": {"message": message}})

    async def write(self, name: str, properties: AzureResource, etag: str | None) -> bool:
        """Replace an incident that has this ETag; False where it is another by now."""
        return await self._resources.put(self._of(name), {"properties": properties}, etag)

    async def logs_id(self) -> str:
        """Return the id of the workspace, by which its logs are asked for."""
        answer = await self._api.get(self._path, **{"api-version": _WORKSPACES_API_VERSION})
        match answer.json:
            case {"properties": {"customerId": str(identifier)}}:
                return identifier
        raise Broken(f"GET {self._path} answered without `customerId`")

    async def roles(self) -> Sequence[AzureResource]:
        """Return what the app's roles on the workspace allow."""
        path = build_permissions_path(self._path)
        answer = await self._api.get(path, **{"api-version": AUTHORIZATION_API_VERSION})
        return _parse_list(answer, "value", path)

    def _of(self, name: str) -> str:
        return f"{self._incidents}/{quote(name, safe='')}"

    async def _ask(self, path: str, member: str) -> Sequence[AzureResource]:
        answer = await self._api.request("POST", path, query=self._version)
        return _parse_list(answer, member, path)


def _parse_list(answer: ApiResponse, member: str, path: str) -> Sequence[AzureResource]:
    """Return the objects of a list; Broken where the answer has no such list."""
    match answer.json:
        case {**members} if isinstance(found := members.get(member), list):
            if all(isinstance(it, dict) for it in found):
                return found
    raise Broken(f"{path} answered without the list `{member}`")


def _parse_next_link(answer: ApiResponse) -> str | None:
    """Return the path and query of the next page.

    Its link may name the port, and is not always that of the server that was asked.
    """
    match answer.json:
        case {"nextLink": str(link)} if link:
            parts = urlsplit(link)
            return f"{parts.path}?{parts.query}"
        case {"nextLink": None | ""}:
            return None
        case {"nextLink": other}:
            raise Broken(f"the link to the next page is {other!r:.80}")
    return None
