"""Ariel searches of the simulated console, with their quirks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from aiohttp import web

from tocsin import EntityKind
from tocsin.testing import ErrorResponse, Fault, LogEvent, Simulator

from .reading import BadQueryError, Query, query

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEPS = ("WAIT", "EXECUTE", "SORTING")
FIELDS = {
    EntityKind.IP: "sourceip",
    EntityKind.USER: "username",
    EntityKind.HOST: "identityhostname",
    EntityKind.URL: "URL",
    EntityKind.FILE_HASH: "SHA256 Hash",
}


def milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


@dataclass
class Search:
    """A search, what it found, and how often it was asked for."""

    words: str
    columns: tuple[str, ...]
    found: list[LogEvent]
    asked: int = 0


class ArielSimulator(Simulator):
    """Searches take their time, may be too many, and are the same for the same words."""

    properties: ClassVar = ("URL", "SHA256 Hash")
    """The custom properties that events have."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.searches: dict[str, Search] = {}
        self.queries: list[str] = []
        """Every query that came."""
        self.busy_polls = 1
        self.most_running = 10
        self.ends_as = "COMPLETED"
        self.error_messages: list[dict[str, Any]] = []

    def searching(self) -> list[web.RouteDef]:
        return [
            web.post("/api/ariel/searches", self.begin),
            web.get("/api/ariel/searches/{search}", self.status),
            web.get("/api/ariel/searches/{search}/results", self.results),
            web.delete("/api/ariel/searches/{search}", self.delete),
        ]

    def need(self, permission: str) -> None:
        raise NotImplementedError

    async def begin(self, request: web.Request) -> web.Response:
        self.need("Log Activity")
        words = request.query["query_expression"]
        self.queries.append(words)
        for name, known in self.searches.items():
            if known.words == words:
                return self.json(self._told(name), 201)
        if (
            sum(search.asked <= self.busy_polls for search in self.searches.values())
            >= self.most_running
        ):
            raise ErrorResponse(503, "The Ariel server might be temporarily unavailable")
        try:
            asked = query(words)
        except BadQueryError as error:
            raise ErrorResponse(422, str(error)) from error
        name = f"s{next(self._numbers)}"
        self.searches[name] = Search(words, asked.columns, self._found(asked))
        return self.json(self._told(name), 201)

    def _found(self, asked: Query) -> list[LogEvent]:
        unknown = [
            column
            for column in asked.columns
            if column[0].isupper() and column not in self.properties
        ]
        if unknown:
            raise ErrorResponse(422, f"Field '{unknown[0]}' does not exist in catalog 'events'")
        found = [
            event
            for event in reversed(self.siem._log)
            if asked.start <= milliseconds(event.occurred_at) < asked.end
            and asked.finds(self.render_log_event(event))
        ]
        return found[: asked.limit]

    def _told(self, name: str) -> dict[str, Any]:
        search = self.searches[name]
        done = search.asked > self.busy_polls
        return {
            "search_id": name,
            "cursor_id": name,
            "status": self.ends_as if done else _STEPS[min(search.asked, 2)],
            "progress": 100 if done else 50,
            "record_count": len(search.found) if done else 0,
            "error_messages": self.error_messages if done else [],
            "query_string": search.words,
        }

    def _search(self, request: web.Request) -> str:
        name = request.match_info["search"]
        if name not in self.searches:
            raise ErrorResponse(404, "The search does not exist.")
        return name

    async def status(self, request: web.Request) -> web.Response:
        name = self._search(request)
        self.searches[name].asked += 1
        return self.json(self._told(name))

    async def results(self, request: web.Request) -> web.Response:
        search = self.searches[self._search(request)]
        if search.asked <= self.busy_polls:
            raise ErrorResponse(404, "Search results not found. The search is still in progress.")
        first, last = span(request)
        page = search.found[first : min(last + 1, first + self.most_per_page)]
        if self._takes(Fault.PARTIAL):
            page = page[: len(page) // 2]
        rows = [self.show_log_event(item) for item in page]
        rows = [{column: row.get(column) for column in search.columns} for row in rows]
        return self.json({"events": rows})

    async def delete(self, request: web.Request) -> web.Response:
        told = self._told(name := self._search(request))
        del self.searches[name]
        return self.json(told, 202)

    def render_log_event(self, log_event: LogEvent) -> dict[str, Any]:
        named = {
            FIELDS[entity.kind]: entity.value
            for entity in log_event.entities
            if entity.kind in FIELDS
        }
        at = milliseconds(log_event.occurred_at)
        row = {
            "starttime": at,
            "devicetime": at - 1500,
            "qid": 5_000_023,
            "event_name": "Made Up",
            "category_name": "Firewall Permit",
            "log_source": "fw @ 192.0.2.254",
            "sourceip": "0.0.0.0",
            "sourceport": 40_123,
            "destinationip": "203.0.113.80",
            "destinationport": 443,
            "sourcev6": "0:0:0:0:0:0:0:0",
            "destinationv6": "0:0:0:0:0:0:0:0",
            "protocol": "TCP",
            "username": None,
            "identityip": "0.0.0.0",
            "identityhostname": None,
            "eventcount": 1,
            "magnitude": 3,
            "payload": f"made up: {log_event.text}",
        }
        return {**row, **named}


def span(request: web.Request) -> tuple[int, int]:
    """Return the ends of the range that is asked for."""
    first, _, last = request.headers["Range"].removeprefix("items=").partition("-")
    return int(first), int(last)
