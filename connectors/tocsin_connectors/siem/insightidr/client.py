"""Client of one InsightIDR organization: investigations, their alerts, and comments.

https://help.rapid7.com/insightidr/en-us/api/v2/docs.html and, for alerts and their evidence,
https://docs.rapid7.com/insightidr/api/alert-triage/. Both are previews, which a header asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from tocsin import Api, ApiResponse, Broken, CredentialsRefused, Refused, Tools
from tocsin_connectors.responses import expect_object
from tocsin_connectors.siem.creation_time import CreatedPage
from tocsin_connectors.siem.insightidr.settings import InsightIDRSettings
from tocsin_connectors.siem.records import child, format_milliseconds, number

INVESTIGATIONS = "/idr/v2/investigations"
SEARCH = f"{INVESTIGATIONS}/_search"
ALERTS, COMMENTS = "/idr/at/alerts", "/idr/v1/comments"
MAX_PAGE = 100
MILLISECOND = timedelta(milliseconds=1)
_MAX_PAGES = 20
_VERSIONS = {
    INVESTIGATIONS: "investigations-preview",
    ALERTS: "strong-force-preview",
    COMMENTS: "comments-preview",
}
_UNREADABLE = (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND)
InsightRecord = dict[str, Any]


class InsightIDRClient:
    """Requests to one organization. All raise what `Api.request` raises."""

    def __init__(self, settings: InsightIDRSettings, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        self._api = Api(tools, settings)
        self._key = settings.api_key

    async def investigations(
        self, since: datetime, until: datetime, index: int, size: int
    ) -> CreatedPage:
        """Return a page of the investigations created from `since` on, before `until`.

        Both bounds of the search are exclusive.
        """
        body = {
            "start_time": format_milliseconds(since - MILLISECOND),
            "end_time": format_milliseconds(until),
            "sort": [{"field": "created_time", "order": "ASC"}],
            "search": [],
        }
        answer = await self._request(
            "POST", SEARCH, query={"index": index, "size": size}, json=body
        )
        records, pages = _parse_page(answer, SEARCH)
        return CreatedPage(records, index + 1 < pages, answer.server_time)

    async def investigation(self, rrn: str) -> InsightRecord | None:
        """Return an investigation by its RRN, or None if it does not exist."""
        try:
            answer = await self._request("GET", _build_path(INVESTIGATIONS, rrn))
        except Refused as refused:
            if refused.is_missing:
                return None
            raise
        return expect_object(answer.json, INVESTIGATIONS)

    async def alerts(self, rrn: str, size: int = MAX_PAGE) -> Sequence[InsightRecord]:
        """Return the first alerts of an investigation, without details."""
        path = f"{_build_path(INVESTIGATIONS, rrn)}/alerts"
        answer = await self._request("GET", path, query={"index": 0, "size": size})
        records, _ = _parse_page(answer, path)
        return records

    async def alert(self, rrn: str) -> InsightRecord | None:
        """Return the details of an alert, or None if it has none or they cannot be read."""
        return await self._read_detail(_build_path(ALERTS, rrn))

    async def evidence(self, rrn: str, size: int) -> Sequence[InsightRecord]:
        """Return the first pieces of evidence of an alert; none if they cannot be read."""
        path = f"{_build_path(ALERTS, rrn)}/evidences"
        found = await self._read_detail(path, index=0, size=size)
        pieces = [] if found is None else found.get("evidences")
        if not isinstance(pieces, list):
            raise Broken(f"GET {path} returned a response without the list `evidences`")
        return [piece for piece in pieces if isinstance(piece, dict)]

    async def _read_detail(self, path: str, **query: int) -> InsightRecord | None:
        try:
            return expect_object((await self._request("GET", path, query=query)).json, path)
        except (CredentialsRefused, Refused) as refused:
            if refused.status not in _UNREADABLE:
                raise
            return None

    async def probe_alerts(self, now: datetime) -> None:
        """Search for an alert, which shows whether alerts can be read."""
        span = {
            "start_time": format_milliseconds(now - timedelta(minutes=1)),
            "end_time": format_milliseconds(now),
        }
        path = f"{ALERTS}/ops/search"
        query = {"index": 0, "size": 1, "rrns_only": "true"}
        await self._request("POST", path, query=query, json={"search": span})

    async def set_status(self, rrn: str, status: str) -> None:
        """Set the status of an investigation."""
        path = f"{_build_path(INVESTIGATIONS, rrn)}/status/{status}"
        expect_object((await self._request("PUT", path, json={})).json, path)

    async def comments(self, rrn: str) -> Sequence[InsightRecord]:
        """Return the comments on an investigation, 2,000 at most."""
        found: list[InsightRecord] = []
        for index in range(_MAX_PAGES):
            query = {"target": rrn, "index": index, "size": MAX_PAGE}
            answer = await self._request("GET", COMMENTS, query=query)
            body = expect_object(answer.json, COMMENTS)
            records = _list_records(body, COMMENTS)
            found += records
            pages = number(child(body, "metadata"), "total_pages")
            if len(records) < MAX_PAGE if pages is None else index + 1 >= pages:
                break
        return found

    async def write_comment(self, rrn: str, body: str) -> None:
        """Write a comment on an investigation."""
        answer = await self._request("POST", COMMENTS, json={"target": rrn, "body": body})
        expect_object(answer.json, COMMENTS)

    async def _request(
        self, method: str, path: str, *, query: dict[str, Any] | None = None, json: Any = None
    ) -> ApiResponse:
        version = next(word for base, word in _VERSIONS.items() if path.startswith(base))
        headers = {"X-Api-Key": self._key.get_secret_value(), "Accept-version": version}
        return await self._api.request(method, path, query=query, json=json, headers=headers)


def _build_path(base: str, rrn: str) -> str:
    return f"{base}/{quote(rrn, safe='')}"


def _list_records(body: InsightRecord, path: str) -> list[InsightRecord]:
    records = body.get("data")
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise Broken(f"{path} returned a response without the list `data`")
    return records


def _parse_page(answer: ApiResponse, path: str) -> tuple[list[InsightRecord], int]:
    """Return the records of a page, and the number of pages."""
    body = expect_object(answer.json, path)
    pages = number(child(body, "metadata"), "total_pages")
    if pages is None:
        raise Broken(f"{path} returned a response without `metadata.total_pages`")
    return _list_records(body, path), pages
