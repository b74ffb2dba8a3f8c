"""Client of one Graylog: events, and searches for messages.

https://go2docs.graylog.org/current/setting_up_graylog/rest_api.html, and for the resources
https://github.com/Graylog2/graylog2-server (`EventsResource`, `ScriptingApiResource`)
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tocsin import Api, Broken, Grant, Tools, Window
from tocsin_connectors.responses import expect_object
from tocsin_connectors.siem.graylog.settings import GraylogSettings
from tocsin_connectors.siem.records import child, format_milliseconds, number, quote_phrase

SEARCH_EVENTS, SEARCH_MESSAGES = "/api/events/search", "/api/search/messages"
GET_STREAM = "/api/streams"
EVENT_STREAM = "000000000000000000000002"
"""ID of the stream of all events, which every Graylog has."""
PROCESSED = "timestamp_processing"
"""When an event was made; its `timestamp` is that of the messages."""
_EVERY_TIME = {"type": "relative", "range": 0}
_HEADERS = {"X-Requested-By": "tocsin"}
"""Required against CSRF by every request that is not a GET."""
GraylogRecord = dict[str, Any]


@dataclass(frozen=True, slots=True)
class EventPage:
    """One page of events."""

    records: Sequence[Mapping[str, Any]]
    total: int
    """Number of events that match the query, on all pages."""
    server_time: datetime | None


class GraylogClient:
    """Requests to one Graylog. All raise what `Api.request` raises."""

    def __init__(self, settings: GraylogSettings, tools: Tools) -> None:
        """Store the dependencies. Performs no I/O."""
        self._alerts = "only" if settings.events == "alerts" else "include"
        self._token = settings.token
        self._api = Api(tools, settings, sign_in=self._sign_in)

    async def _sign_in(self) -> Grant:
        """Return the token as Basic credentials. There is no request for it."""
        credentials = f"{self._token.get_secret_value()}:token".encode()
        return Grant(f"Basic {base64.b64encode(credentials).decode()}")

    async def events(self, since: str, until: datetime, page: int, limit: int) -> EventPage:
        """Return a page of the events made from `since` on and before `until`, oldest first."""
        query = f'{PROCESSED}:["{since}" TO "{format_time(until)}"}}'
        return await self._search(query, self._alerts, page, limit)

    async def event(self, identifier: str) -> GraylogRecord | None:
        """Return an event by its ID, or None if it does not exist.

        A search also returns the definition of the event; the request for one event does not.
        """
        found = await self._search(f"id:{quote_phrase(identifier)}", "include", 1, 1)
        return next((dict(record) for record in found.records), None)

    async def _search(self, query: str, alerts: str, page: int, limit: int) -> EventPage:
        body = {
            "query": query,
            "filter": {"alerts": alerts},
            "timerange": _EVERY_TIME,
            "sort_by": PROCESSED,
            "sort_direction": "asc",
            "page": page,
            "per_page": limit,
        }
        answer = await self._api.request("POST", SEARCH_EVENTS, json=body, headers=_HEADERS)
        found = expect_object(answer.json, SEARCH_EVENTS)
        records, total = found.get("events"), number(found, "total_events")
        if total is None or not isinstance(records, list) or not _are_objects(records):
            raise Broken(
                f"POST {SEARCH_EVENTS} returned a response without `events` or `total_events`"
            )
        definitions = child(child(found, "context"), "event_definitions")
        return EventPage(
            [_unwrap(record, definitions) for record in records], total, answer.server_time
        )

    async def check_stream(self) -> None:
        """Read the stream of events. Raises `CredentialsRefused` without access to it.

        Without access, searches for events find nothing, and are no error.
        """
        await self._api.get(f"{GET_STREAM}/{EVENT_STREAM}")

    async def messages(
        self, query: str, window: Window, fields: Sequence[str], offset: int, limit: int
    ) -> list[GraylogRecord]:
        """Return the latest messages of all streams that match a query in a window."""
        body = {
            "query": query,
            "timerange": {
                "type": "absolute",
                "from": format_milliseconds(window.start),
                "to": format_milliseconds(window.end),
            },
            "fields": list(fields),
            "sort": "timestamp",
            "sort_order": "desc",
            "from": offset,
            "size": limit,
        }
        answer = await self._api.request("POST", SEARCH_MESSAGES, json=body, headers=_HEADERS)
        found = expect_object(answer.json, SEARCH_MESSAGES)
        rows = found.get("datarows")
        if not isinstance(rows, list) or not all(
            isinstance(row, list) and len(row) == len(fields) for row in rows
        ):
            raise Broken(f"POST {SEARCH_MESSAGES} returned a response without `datarows`")
        return [dict(zip(fields, row, strict=True)) for row in rows]


def format_time(moment: datetime) -> str:
    """Format a time as queries and indices have it: in UTC, with milliseconds."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ", timespec="milliseconds")


def _unwrap(record: GraylogRecord, definitions: GraylogRecord) -> GraylogRecord:
    """Return the event in a result, with its definition."""
    event = record.get("event")
    if not isinstance(event, dict):
        return record
    definition = child(definitions, str(event.get("event_definition_id")))
    return event | {"event_definition": definition} if definition else event


def _are_objects(records: list[Any]) -> bool:
    return all(isinstance(record, dict) for record in records)
