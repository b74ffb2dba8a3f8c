"""Simulator of a Graylog: the part that the provider uses, with its quirks."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from aiohttp import web

from tocsin import Entity, EntityKind, Severity, Window
from tocsin.testing import Case, ErrorResponse, LogEvent, Simulator, run_simulator

TOKEN = "1a2b3c4d5e6f"
SETTINGS = {"token": TOKEN}
EVENT_STREAM = "000000000000000000000002"
MOST_RESULTS = 10_000
_RANGE = re.compile(r'timestamp_processing:\["(.+)" TO "(.+)"\}')
_IDENTIFIER = re.compile(r'id:"((?:[^"\\]|\\.)*)"', re.DOTALL)
_TERM = re.compile(r'(\w+):"((?:[^"\\]|\\.)*)"')
_PRIORITIES = {
    Severity.INFORMATIONAL: 0,
    Severity.LOW: 1,
    Severity.MEDIUM: 2,
    Severity.HIGH: 3,
    Severity.CRITICAL: 4,
}
FIELDS = {
    EntityKind.IP: (
        *("source_ip", "destination_ip", "host_ip", "source_nat_ip", "destination_nat_ip"),
        *("associated_ip", "src_ip", "dst_ip"),
    ),
    EntityKind.HOST: ("host_hostname", "source_hostname", "destination_hostname", "host.name"),
    EntityKind.USER: (
        *("user_name", "source_user_name", "destination_user_name", "associated_user_name"),
    ),
    EntityKind.DOMAIN: ("dns_query", "query_request", "http_host", "url.domain"),
    EntityKind.FILE_HASH: ("hash_sha256", "hash_sha1", "hash_md5", "associated_hash"),
}
"""Fields of an event by kind: a field has one value."""
KINDS = {name: kind for kind, names in FIELDS.items() for name in names}


def fill(entities: tuple[Entity, ...]) -> dict[str, str]:
    """Return fields with these entities, as many as there are fields."""
    filled = {}
    for kind, names in FIELDS.items():
        values = [entity.value for entity in entities if entity.kind is kind]
        filled |= dict(zip(names, values, strict=False))
    return filled


def stamp(moment: datetime) -> str:
    """Return a time as Graylog writes it, to the millisecond."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def trim(moment: datetime) -> datetime:
    """Return the time that an index keeps."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


class GraylogSimulator(Simulator):
    """Events, which are found by when they were made."""

    most_per_page: ClassVar[int] = 10_000
    _reason = "message"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.forbidden: set[str] = set()
        """Paths that the user of the token may not request."""
        self.asked: list[dict[str, Any]] = []
        """Bodies of searches for events."""

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/api/events/search", self.search_events),
            web.get("/api/streams/{name}", self.get_stream),
            web.post("/api/search/messages", self.search_messages),
        ]

    def is_signed(self, request: web.Request) -> bool:
        expected = base64.b64encode(f"{TOKEN}:token".encode()).decode()
        return request.headers.get("Authorization") == f"Basic {expected}"

    def admit(self, request: web.Request) -> None:
        if request.method == "POST" and not request.headers.get("X-Requested-By"):
            raise ErrorResponse(400, "CSRF protection header is missing")
        if request.path in self.forbidden:
            raise ErrorResponse(403, "Not authorized")

    async def search_events(self, request: web.Request) -> web.Response:
        self.admit(request)
        body = await request.json()
        self.asked.append(body)
        if match := _IDENTIFIER.fullmatch(body["query"]):
            case = self.siem.get(re.sub(r"\\(.)", r"\1", match[1]))
            return self.answer_search(body, [] if case is None else [case], int(case is not None))
        match = _RANGE.fullmatch(body["query"])
        if match is None or body["sort_by"] != "timestamp_processing":
            raise ErrorResponse(400, "Unable to perform search query")
        start, end = (datetime.fromisoformat(part).replace(tzinfo=UTC) for part in match.groups())
        offset = (body["page"] - 1) * body["per_page"]
        if offset + body["per_page"] > MOST_RESULTS:
            raise ErrorResponse(400, "Result window is too large")
        # The index keeps milliseconds
        cases = [
            case
            for case in self.siem.changed(Window(start, end))
            if start <= trim(case.changed_at) < end
        ]
        page = self.slice(Window(start, end), limit=body["per_page"], offset=offset)
        return self.answer_search(body, page, len(cases))

    def answer_search(self, body: dict[str, Any], page: Sequence[Case], total: int) -> web.Response:
        definitions = {
            "d1": {"id": "d1", "title": "Failed logins", "description": "", "remediation_steps": ""}
        }
        return self.json(
            {
                "events": [self.wrap(case) for case in page],
                "used_indices": ["gl-events_0"],
                "parameters": body,
                "total_events": total,
                "duration": 3,
                "context": {"event_definitions": definitions, "streams": {}},
            }
        )

    def wrap(self, case: Case) -> dict[str, Any]:
        return {"event": self.show(case), "index_name": "gl-events_0", "index_type": "message"}

    async def get_stream(self, request: web.Request) -> web.Response:
        self.admit(request)
        if request.match_info["name"] != EVENT_STREAM:
            raise ErrorResponse(404, "No such stream")
        return self.json({"id": EVENT_STREAM, "title": "All events"})

    async def search_messages(self, request: web.Request) -> web.Response:
        self.admit(request)
        body = await request.json()
        times = body["timerange"]
        window = Window(*(datetime.fromisoformat(times[name]) for name in ("from", "to")))
        wanted = {
            Entity(KINDS[name], re.sub(r"\\(.)", r"\1", value))
            for name, value in _TERM.findall(body["query"])
            if name in KINDS
        }
        found: list[LogEvent] = []
        for entity in wanted:
            found += self.logged(window, entity, limit=body["size"], offset=body["from"])
        rows = [self.show_log_event(log_event) for log_event in found]
        return self.json(
            {
                "schema": [{"column_type": "field", "field": name} for name in body["fields"]],
                "datarows": [[row.get(name, "-") for name in body["fields"]] for row in rows],
                "metadata": {"effective_timerange": times},
            }
        )

    # shapes

    def render(self, case: Case) -> dict[str, Any]:
        priority = _PRIORITIES.get(case.severity) if isinstance(case.severity, Severity) else 9
        return {
            "id": case.id,
            "event_definition_type": "aggregation-v1",
            "event_definition_id": "d1",
            "origin_context": None,
            "timestamp": stamp(case.created_at),
            "timestamp_processing": stamp(case.changed_at),
            "timerange_start": None,
            "timerange_end": None,
            "streams": [EVENT_STREAM],
            "source_streams": [],
            "message": case.title,
            "source": "graylog-1",
            "key_tuple": [],
            "key": case.description or None,
            "priority": priority,
            "scores": {},
            "associated_assets": [],
            "alert": True,
            "fields": fill(case.entities),
            "group_by_fields": {},
            "aggregation_conditions": {},
            "replay_info": None,
            "tactics_techniques": ["TA0006", "T1110"],
        }

    def render_log_event(self, log_event: LogEvent) -> dict[str, Any]:
        return {
            "gl2_message_id": log_event.id,
            "timestamp": stamp(log_event.occurred_at),
            "source": "fw-1",
            "message": log_event.text,
            **fill(log_event.entities),
        }


if __name__ == "__main__":
    run_simulator(GraylogSimulator)
