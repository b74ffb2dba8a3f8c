"""Client of one Datadog organization: signals, their states, and logs.

https://docs.datadoghq.com/api/latest/security-monitoring/ and /logs/
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

from tocsin import Api, Broken, Refused, Tools, Window
from tocsin_connectors.responses import expect_object, get_page_token
from tocsin_connectors.siem.datadog.settings import DatadogSettings
from tocsin_connectors.siem.records import child, format_milliseconds

SIGNALS = "/api/v2/security_monitoring/signals"
SEARCH_SIGNALS = f"{SIGNALS}/search"
SEARCH_LOGS = "/api/v2/logs/events/search"
DatadogRecord = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DatadogPage:
    """A page of signals or logs."""

    records: Sequence[DatadogRecord]
    next_token: str | None
    server_time: datetime | None


class DatadogClient:
    """Requests to one organization. All raise what `Api.request` raises."""

    def __init__(self, settings: DatadogSettings, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        self._query = settings.query
        self._api = Api(tools, settings)
        self._keys = {
            "DD-API-KEY": settings.api_key.get_secret_value(),
            "DD-APPLICATION-KEY": settings.application_key.get_secret_value(),
        }

    async def signals(self, window: Window, token: str | None, limit: int) -> DatadogPage:
        """Return a page of the signals of a window by their timestamps, oldest first."""
        searched = _build_filter(self._query, window)
        return await self._search(SEARCH_SIGNALS, searched, "timestamp", token, limit)

    async def logs(self, query: str, window: Window, token: str | None, limit: int) -> DatadogPage:
        """Return a page of the logs of a window that match a query, latest first."""
        searched = _build_filter(query, window)
        return await self._search(SEARCH_LOGS, searched, "-timestamp", token, limit)

    async def _search(
        self, path: str, searched: DatadogRecord, order: str, token: str | None, limit: int
    ) -> DatadogPage:
        page: dict[str, Any] = {"limit": limit}
        if token is not None:
            page["cursor"] = token
        body = {"filter": searched, "sort": order, "page": page}
        answer = await self._api.request("POST", path, json=body, headers=self._keys)
        found = expect_object(answer.json, path)
        records = found.get("data")
        if not isinstance(records, list) or not all(isinstance(one, dict) for one in records):
            raise Broken(f"POST {path} returned a response without the list `data`")
        paging = child(child(found, "meta"), "page")
        if paging and "after" not in paging:
            raise Broken(f"POST {path} returned a response whose `meta.page` lacks `after`")
        return DatadogPage(records, get_page_token(paging, "after"), answer.server_time)

    async def signal(self, identifier: str) -> DatadogRecord | None:
        """Return a signal by its ID, or None if it does not exist."""
        path = f"{SIGNALS}/{quote(identifier, safe='')}"
        try:
            answer = await self._api.request("GET", path, headers=self._keys)
        except Refused as refused:
            if refused.is_missing:
                return None
            raise
        match expect_object(answer.json, SIGNALS):
            case {"data": dict(signal)}:
                return signal
        raise Broken(f"GET {SIGNALS} returned a response without `data`")

    async def set_state(self, identifier: str, state: str) -> None:
        """Set the triage state of a signal."""
        path = f"{SIGNALS}/{quote(identifier, safe='')}/state"
        body = {"data": {"attributes": {"state": state, "archive_reason": "none"}}}
        answer = await self._api.request("PATCH", path, json=body, headers=self._keys)
        expect_object(answer.json, path)


def _build_filter(query: str, window: Window) -> DatadogRecord:
    return {
        "query": query,
        "from": format_milliseconds(window.start),
        "to": format_milliseconds(window.end),
    }
