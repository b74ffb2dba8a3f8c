"""The logs of a workspace, asked by the query API of Log Analytics.

https://learn.microsoft.com/azure/azure-monitor/logs/api/overview
"""

from __future__ import annotations

from typing import Any

from tocsin import Broken, Window
from tocsin_connectors.microsoft.entra import EntraClient
from tocsin_connectors.siem.microsoft.kql import format_interval
from tocsin_connectors.siem.microsoft.searching import LogRows
from tocsin_connectors.siem.sentinel.settings import SentinelSettings
from tocsin_connectors.siem.sentinel.workspace import SentinelClient

TIME_COLUMN = "TimeGenerated"
"""The column that every table of a workspace has its time in."""


class WorkspaceLogs:
    """Queries to one workspace, with tokens of their own."""

    def __init__(
        self, settings: SentinelSettings, entra: EntraClient, workspace: SentinelClient
    ) -> None:
        """Keep what is needed; do no I/O."""
        self._api = entra.api(settings.logs_url, settings.cloud_endpoints.logs)
        self._workspace = workspace
        self._id = settings.workspace_id

    async def run(self, query: str, window: Window) -> LogRows:
        """Return the rows of a query; raises what `Api.request` raises."""
        self._id = self._id or await self._workspace.logs_id()
        path = f"/v1/workspaces/{self._id}/query"
        body = {"query": query, "timespan": format_interval(window)}
        answer = await self._api.request("POST", path, json=body)
        match answer.json:
            case {"tables": [{"columns": [*columns], "rows": [*rows]}, *_]}:
                names = [str(it.get("name")) for it in columns if isinstance(it, dict)]
                found = [dict(zip(names, it, strict=False)) for it in rows if isinstance(it, list)]
                return LogRows(found, _describe_partial_error(answer.json))
        raise Broken(f"POST {path} answered without a table of rows")


def _describe_partial_error(answer: dict[str, Any]) -> str | None:
    """Return what kept the answer from being whole: such are answered 200, with an `error`."""
    match answer.get("error"):
        case None:
            return None
        case {"code": str(code), "message": str(message)}:
            return f"{code}: {message}"[:300]
    return "it holds an error"
