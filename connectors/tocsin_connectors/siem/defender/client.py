"""Client of Microsoft Graph's security API for one tenant: incidents, alerts and hunting.

https://learn.microsoft.com/graph/api/resources/security-api-overview
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from tocsin import ApiResponse, Broken, Refused, Window
from tocsin_connectors.microsoft.entra import EntraClient, EntraSettings
from tocsin_connectors.siem.defender.pagination import UPDATED, DefenderCursor, DefenderRecord
from tocsin_connectors.siem.microsoft.kql import format_interval, format_second
from tocsin_connectors.siem.microsoft.search import LogRows

INCIDENTS, ALERTS = "/v1.0/security/incidents", "/v1.0/security/alerts_v2"
HUNTING = "/v1.0/security/runHuntingQuery"
_WITH_ALERTS = {"$expand": "alerts"}
_NEW_ENUM_MEMBERS = {"Prefer": "include-unknown-enum-members"}
"""Without it, newer statuses are returned as `unknownFutureValue`."""
_UTF8 = {"Content-Type": "application/json; charset=utf-8"}
"""Without the charset, non-ASCII letters are garbled."""


class DefenderClient:
    """Requests for incidents, alerts and hunting. All raise what `Api.request` raises."""

    def __init__(self, settings: EntraSettings, entra: EntraClient) -> None:
        """Store the dependencies. Performs no I/O."""
        self._entra = entra
        self._audience = settings.cloud_endpoints.graph
        self._api = entra.api(settings.url, self._audience)

    def granted(self) -> frozenset[str]:
        """Return the permissions in the app's token, or none if it cannot be parsed."""
        return self._entra.granted(self._audience)

    async def incidents(
        self, cursor: DefenderCursor, window: Window, limit: int, *, alerts: bool = True
    ) -> tuple[Sequence[DefenderRecord], bool, ApiResponse]:
        """Return a page of incidents, whether more may follow, and the response."""
        return await self._list(INCIDENTS, cursor, window, limit, _WITH_ALERTS if alerts else {})

    async def alerts(
        self, cursor: DefenderCursor, window: Window, limit: int
    ) -> tuple[Sequence[DefenderRecord], bool, ApiResponse]:
        """Return a page of alerts, whether more may follow, and the response."""
        return await self._list(ALERTS, cursor, window, limit, {})

    async def _list(
        self, path: str, cursor: DefenderCursor, window: Window, limit: int, more: dict[str, str]
    ) -> tuple[Sequence[DefenderRecord], bool, ApiResponse]:
        query = {
            "$filter": f"{UPDATED} ge {cursor.since} and {UPDATED} lt {format_second(window.end)}",
            "$orderby": f"{UPDATED} asc",
            "$top": limit,
            "$skip": cursor.skip or None,
            **more,
        }
        answer = await self._get(path, query)
        match answer.json:
            case {"value": [*records], **others} if all(
                isinstance(record, dict) for record in records
            ):
                # With `$top`, Graph may omit the link to the next page
                follows = bool(others.get("@odata.nextLink")) or len(records) >= limit
                return records, follows, answer
        raise Broken(f"GET {path} returned a response without the list `value`")

    async def incident(self, name: str) -> DefenderRecord | None:
        """Return an incident with its alerts, or None if it does not exist."""
        return await self._read(_build_path(INCIDENTS, name), _WITH_ALERTS)

    async def alert(self, name: str) -> DefenderRecord | None:
        """Return an alert, or None if it does not exist."""
        return await self._read(_build_path(ALERTS, name), {})

    async def _read(self, path: str, query: dict[str, str]) -> DefenderRecord | None:
        try:
            answer = await self._get(path, query)
        except Refused as refused:
            if refused.is_missing:
                return None
            raise
        if isinstance(answer.json, dict):
            return answer.json
        raise Broken(f"GET {path} did not return an object")

    async def write_comment(self, kind: str, name: str, comment: str) -> None:
        """Add a comment to an incident or an alert; `kind` is the path of either."""
        body = {"@odata.type": "microsoft.graph.security.alertComment", "comment": comment}
        path = f"{_build_path(kind, name)}/comments"
        _check_object(await self._api.request("POST", path, json=body, headers=_UTF8), path)

    async def write_status(self, kind: str, name: str, status: str) -> None:
        """Set the status of an incident or an alert, in Graph's terms."""
        path = _build_path(kind, name)
        _check_object(await self._api.request("PATCH", path, json={"status": status}), path)

    async def hunt(self, query: str, window: Window) -> LogRows:
        """Return the rows of a hunting query."""
        body = {"Query": query, "Timespan": format_interval(window)}
        answer = await self._api.request("POST", HUNTING, json=body, headers=_UTF8)
        match answer.json:
            case {"results": [*rows]}:
                return LogRows([row for row in rows if isinstance(row, dict)])
        raise Broken(f"POST {HUNTING} returned a response without the list `results`")

    async def _get(self, path: str, query: dict[str, Any]) -> ApiResponse:
        return await self._api.request("GET", path, query=query, headers=_NEW_ENUM_MEMBERS)


def _build_path(kind: str, name: str) -> str:
    return f"{kind}/{quote(name, safe='')}"


def _check_object(answer: ApiResponse, path: str) -> None:
    if not isinstance(answer.json, dict):
        raise Broken(f"{path} did not return the written object")
