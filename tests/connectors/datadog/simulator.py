"""Simulator of a Datadog organization: the part that the provider uses, with its quirks."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from aiohttp import web

from tocsin import Entity, EntityKind, IncidentStatus, Severity, Window
from tocsin.testing import Case, ErrorResponse, Fault, LogEvent, Simulator, run_simulator

API_KEY, APPLICATION_KEY = "0a1b2c3d4e5f", "f5e4d3c2b1a0"
SETTINGS = {"api_key": API_KEY, "application_key": APPLICATION_KEY}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STATES = {"New": "open", "Active": "under_review", "Closed": "archived"}
_STANDS = {word: IncidentStatus(status) for status, word in _STATES.items()}
_WORDS = {Severity.INFORMATIONAL: "info"}
_TERM = re.compile(r'@?([\w.]+):"((?:[^"\\]|\\.)*)"', re.DOTALL)
KINDS = {
    "network.client.ip": EntityKind.IP,
    "host": EntityKind.HOST,
    "usr.id": EntityKind.USER,
    "dns.question.name": EntityKind.DOMAIN,
}


def stamp(moment: datetime) -> str:
    """Return a time as Datadog writes it, to the millisecond."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def in_milliseconds(moment: datetime) -> int:
    """Return a time in milliseconds since 1970."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


class DatadogSimulator(Simulator):
    """Signals, which are found by when they were made."""

    most_per_page: ClassVar[int] = 1000

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.lacks: set[str] = set()
        """Permissions that the application key does not have."""
        self.asked: list[dict[str, Any]] = []
        """Bodies of searches for signals."""
        self.shows_triage_time = True
        """Whether a signal says when it was triaged."""
        self.states: list[Any] = []
        """Bodies of changes of states."""

    def routes(self) -> list[web.RouteDef]:
        base = "/api/v2/security_monitoring/signals"
        return [
            web.post(f"{base}/search", self.search_signals),
            web.get(base + "/{name}", self.get_signal),
            web.patch(base + "/{name}/state", self.set_state),
            web.post("/api/v2/logs/events/search", self.search_logs),
        ]

    def is_signed(self, request: web.Request) -> bool:
        keys = request.headers.get("DD-API-KEY"), request.headers.get("DD-APPLICATION-KEY")
        return keys == (API_KEY, APPLICATION_KEY)

    def need(self, permission: str) -> None:
        if permission in self.lacks:
            raise ErrorResponse(403, "Forbidden")

    async def search_signals(self, request: web.Request) -> web.Response:
        self.need("security_monitoring_signals_read")
        body = await request.json()
        self.asked.append(body)
        window = _window(body)
        if body["sort"] != "timestamp":
            raise ErrorResponse(400, "this simulator sorts by timestamp alone")
        cases = self.siem.created(window)
        token, limit = body["page"].get("cursor"), body["page"]["limit"]
        start = 0 if token is None else self.behind(cases, token)
        end = start + min(limit, self.most_per_page)
        page = cases[start:end]
        if any(case.id in self.siem.poisoned for case in page):
            raise ErrorResponse(500, "Internal error")
        following = self._token(_key(cases[end - 1])) if end < len(cases) else None
        if self._takes(Fault.PARTIAL):
            page = page[: len(page) // 2]
        elif token is not None and self._takes(Fault.REPEATED_PAGE):
            following = token
        meta = {"page": {"after": following}} if following else {}
        return self.json({"data": [self.show(case) for case in page], "meta": meta})

    def behind(self, cases: Any, token: str) -> int:
        """Return the index of the first case behind the one that a token remembers."""
        self._place([], token)  # whether it has expired
        return bisect_right(cases, self._places[token].key, key=_key)

    async def get_signal(self, request: web.Request) -> web.Response:
        self.need("security_monitoring_signals_read")
        return self.json({"data": self.show(self.get(request.match_info["name"]))})

    async def set_state(self, request: web.Request) -> web.Response:
        self.need("security_monitoring_signals_write")
        body = await request.json()
        case = self.get(request.match_info["name"])
        self.states.append(body)
        now, state = self.siem.clock.now(), body["data"]["attributes"]["state"]
        self.siem.put(replace(case, status=_STANDS[state], changed_at=now))
        triage = {"state": state, "archive_reason": "none", "incident_ids": []}
        return self.json({"data": {"id": case.id, "type": "signal_metadata", "attributes": triage}})

    async def search_logs(self, request: web.Request) -> web.Response:
        self.need("logs_read_data")
        body = await request.json()
        offset = int(body["page"].get("cursor") or 0)
        wanted = {
            Entity(KINDS[name], re.sub(r"\\(.)", r"\1", value))
            for name, value in _TERM.findall(body["filter"]["query"])
            if name in KINDS
        }
        found: list[LogEvent] = []
        limit = body["page"]["limit"]
        for entity in wanted:
            found += self.logged(_window(body), entity, limit=limit, offset=offset)
        meta = {"page": {"after": str(offset + len(found))}} if found else {}
        return self.json({"data": [self.show_log_event(one) for one in found], "meta": meta})

    # shapes

    def render(self, case: Case) -> dict[str, Any]:
        known = isinstance(case.severity, Severity)
        word = _WORDS.get(case.severity, str(case.severity).lower()) if known else case.severity
        triage: dict[str, Any] = {
            "assignee": {"name": "Unassigned", "id": -1},
            "state": _STATES[case.status],
            "incidentIds": [],
        }
        if case.changed_at > case.created_at and self.shows_triage_time:
            triage["stateUpdateTimestamp"] = in_milliseconds(case.changed_at) + 1
        return {
            "id": case.id,
            "type": "signal",
            "attributes": {
                "status": str(word),
                "timestamp": stamp(case.created_at),
                "tags": ["security:attack", "technique:t1110-brute-force", "tactic:ta0006"],
                "message": case.description,
                "attributes": {
                    "title": case.title,
                    "entities": [f"@{_names(entity)}:{entity.value}" for entity in case.entities],
                    "workflow": {"rule": {"id": "r-1", "name": "A rule"}, "triage": triage},
                },
            },
        }

    def render_log_event(self, log_event: LogEvent) -> dict[str, Any]:
        custom: dict[str, Any] = {}
        host = None
        for entity in log_event.entities:
            name = _names(entity)
            if name == "host":
                host = entity.value
            else:
                custom[name] = entity.value
        return {
            "id": log_event.id,
            "type": "log",
            "attributes": {
                "timestamp": stamp(log_event.occurred_at),
                "message": log_event.text,
                "host": host,
                "attributes": custom,
            },
        }


def _names(entity: Entity) -> str:
    return next((name for name, kind in KINDS.items() if kind is entity.kind), "other")


def _window(body: dict[str, Any]) -> Window:
    times = body["filter"]
    return Window(*(datetime.fromisoformat(times[name]) for name in ("from", "to")))


def _key(case: Case) -> tuple[datetime, str]:
    return case.created_at, case.id


if __name__ == "__main__":
    run_simulator(DatadogSimulator)
