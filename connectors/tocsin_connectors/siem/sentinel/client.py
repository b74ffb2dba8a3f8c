"""Clients of one workspace: Sentinel's API over Azure Resource Manager, and log queries.

https://learn.microsoft.com/rest/api/securityinsights/incidents and
https://learn.microsoft.com/azure/azure-monitor/logs/api/overview
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlsplit

from tocsin import ApiResponse, Broken, Window
from tocsin_connectors.microsoft.entra import EntraClient
from tocsin_connectors.microsoft.resources import (
    AUTHORIZATION_API_VERSION,
    AzureResource,
    AzureResources,
    build_incidents_path,
    build_permissions_path,
    build_workspace_path,
)
from tocsin_connectors.siem.microsoft.kql import format_interval, format_second
from tocsin_connectors.siem.microsoft.search import LogRows
from tocsin_connectors.siem.sentinel.pagination import MODIFIED, SentinelCursor
from tocsin_connectors.siem.sentinel.settings import SentinelSettings

CHANGE_FIELD = f"properties/{MODIFIED}"
_WORKSPACES_API_VERSION = "2023-09-01"


class SentinelClient:
    """Requests to one workspace. All raise what `Api.request` raises."""

    def __init__(self, settings: SentinelSettings, entra: EntraClient) -> None:
        """Store the dependencies. Performs no I/O."""
        self._version = {"api-version": settings.api_version}
        self._api = entra.api(settings.url, settings.cloud_endpoints.management)
        self._resources = AzureResources(self._api, settings.api_version)
        self._path = build_workspace_path(
            settings.subscription, settings.resource_group, settings.workspace
        )
        self._incidents = build_incidents_path(self._path)

    async def first(self) -> AzureResource | None:
        """Return any incident, or None if there is none yet."""
        answer = await self._api.get(self._incidents, **self._version, **{"$top": 1})
        return next(iter(_parse_list(answer, "value", self._incidents)), None)

    async def changed(
        self, cursor: SentinelCursor, end: datetime, limit: int
    ) -> tuple[Sequence[AzureResource], str | None, ApiResponse]:
        """Return a page of the incidents modified before `end`, oldest first.

        Also returns the path and query of the next page, None for the last one, and the response.
        """
        query = {
            **self._version,
            "$filter": f"{CHANGE_FIELD} ge {cursor.since} "
            f"and {CHANGE_FIELD} lt {format_second(end)}",
            "$orderby": f"{CHANGE_FIELD} asc",
            "$top": limit,
        }
        if cursor.link is None:
            answer = await self._api.get(self._incidents, **query)
        else:
            answer = await self._api.get(cursor.link)
        return _parse_list(answer, "value", self._incidents), _parse_next_link(answer), answer

    async def incident(self, name: str) -> AzureResource | None:
        """Return an incident, or None if it does not exist."""
        return await self._resources.get(self._incident_path(name))

    async def alerts(self, name: str) -> Sequence[AzureResource]:
        """Return the alerts of an incident."""
        return await self._ask(f"{self._incident_path(name)}/alerts", "value")

    async def entities(self, name: str) -> Sequence[AzureResource]:
        """Return the entities of an incident."""
        return await self._ask(f"{self._incident_path(name)}/entities", "entities")

    async def comment(self, name: str, comment: str) -> AzureResource | None:
        """Return a comment of an incident, or None if it does not exist."""
        return await self._resources.get(f"{self._incident_path(name)}/comments/{comment}")

    async def write_comment(self, name: str, comment: str, message: str) -> bool:
        """Create a comment. Return False if it conflicts with an existing one."""
        path = f"{self._incident_path(name)}/comments/{comment}"
        return await self._resources.put(path, {"properties": {"message": message}})

    async def write(self, name: str, properties: AzureResource, etag: str | None) -> bool:
        """Replace an incident with this ETag. Return False if it has changed."""
        return await self._resources.put(
            self._incident_path(name), {"properties": properties}, etag
        )

    async def logs_id(self) -> str:
        """Return the ID of the workspace for log queries."""
        answer = await self._api.get(self._path, **{"api-version": _WORKSPACES_API_VERSION})
        match answer.json:
            case {"properties": {"customerId": str(identifier)}}:
                return identifier
        raise Broken(f"GET {self._path} returned a response without `customerId`")

    async def roles(self) -> Sequence[AzureResource]:
        """Return the permissions of the app's roles on the workspace."""
        path = build_permissions_path(self._path)
        answer = await self._api.get(path, **{"api-version": AUTHORIZATION_API_VERSION})
        return _parse_list(answer, "value", path)

    def _incident_path(self, name: str) -> str:
        return f"{self._incidents}/{quote(name, safe='')}"

    async def _ask(self, path: str, member: str) -> Sequence[AzureResource]:
        answer = await self._api.request("POST", path, query=self._version)
        return _parse_list(answer, member, path)


def _parse_list(answer: ApiResponse, member: str, path: str) -> Sequence[AzureResource]:
    """Return the objects of a list. Raises `Broken` if the response has no such list."""
    match answer.json:
        case {**members} if isinstance(found := members.get(member), list):
            if all(isinstance(record, dict) for record in found):
                return found
    raise Broken(f"{path} returned a response without the list `{member}`")


def _parse_next_link(answer: ApiResponse) -> str | None:
    """Return the path and query of the next page.

    Its link may include the port, so its origin may differ from the requested one.
    """
    match answer.json:
        case {"nextLink": str(link)} if link:
            parts = urlsplit(link)
            return f"{parts.path}?{parts.query}"
        case {"nextLink": None | ""}:
            return None
        case {"nextLink": other}:
            raise Broken(f"invalid link to the next page: {other!r:.80}")
    return None


TIME_COLUMN = "TimeGenerated"
"""Time column of every table of a workspace."""


class WorkspaceLogs:
    """Log queries to one workspace, with separate tokens."""

    def __init__(
        self, settings: SentinelSettings, entra: EntraClient, workspace: SentinelClient
    ) -> None:
        """Store the dependencies. Performs no I/O."""
        self._api = entra.api(settings.logs_url, settings.cloud_endpoints.logs)
        self._workspace = workspace
        self._id = settings.workspace_id

    async def run(self, query: str, window: Window) -> LogRows:
        """Return the rows of a query. Raises what `Api.request` raises."""
        self._id = self._id or await self._workspace.logs_id()
        path = f"/v1/workspaces/{self._id}/query"
        body = {"query": query, "timespan": format_interval(window)}
        answer = await self._api.request("POST", path, json=body)
        match answer.json:
            case {"tables": [{"columns": [*columns], "rows": [*rows]}, *_]}:
                names = [str(column.get("name")) for column in columns if isinstance(column, dict)]
                found = [
                    dict(zip(names, row, strict=False)) for row in rows if isinstance(row, list)
                ]
                return LogRows(found, _describe_partial_error(answer.json))
        raise Broken(f"POST {path} returned a response without a table of rows")


def _describe_partial_error(answer: dict[str, Any]) -> str | None:
    """Return why a result is partial: such responses have status 200 and an `error`."""
    match answer.get("error"):
        case None:
            return None
        case {"code": str(code), "message": str(message)}:
            return f"{code}: {message}"[:300]
    return "the response contains an error"
