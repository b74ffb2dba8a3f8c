"""Simulator of an Exabeam subscription: the part that the provider uses, with its quirks."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from aiohttp import web

from tocsin import Entity, EntityKind, IncidentStatus, Severity, Window
from tocsin.testing import Case, ErrorResponse, Fault, LogEvent, Simulator, run_simulator

CLIENT_ID, SECRET = "key-1", "a1b2c3d4e5f6"
SETTINGS = {"client_id": CLIENT_ID, "client_secret": SECRET}
MOST_ROWS = 3_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STAGES = {"New": "NEW", "Active": "INVESTIGATION", "Closed": "CLOSED"}
_TERM = re.compile(r'(\w+):"((?:[^"\\]|\\.)*)"', re.DOTALL)
KINDS = {
    "src_ip": EntityKind.IP,
    "host": EntityKind.HOST,
    "user": EntityKind.USER,
    "web_domain": EntityKind.DOMAIN,
}
MEMBERS = {EntityKind.IP: "srcIps", EntityKind.HOST: "srcHosts", EntityKind.USER: "users"}


def count_microseconds(moment: datetime) -> int:
    """Return a time in microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


class ExabeamSimulator(Simulator):
    """Cases or alerts, which are found by when they were created, to the second."""

    open_paths = ("/auth/v1/token",)
    most_per_page: ClassVar[int] = MOST_ROWS

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.forbidden: set[str] = set()
        """Paths that the API key may not request."""
        self.asked: list[dict[str, Any]] = []
        """Bodies of searches for cases and alerts."""
        self.changes: list[Any] = []
        """Bodies of changes of cases."""
        self.errors: Any = None
        """Errors that a search answers with, despite its status."""

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/auth/v1/token", self.sign_in),
            web.post("/threat-center/v1/search/cases", self.search),
            web.post("/threat-center/v1/search/alerts", self.search),
            web.get("/threat-center/v1/cases/{id}", self.get_record),
            web.get("/threat-center/v1/alerts/{id}", self.get_record),
            web.post("/threat-center/v2/cases/{id}", self.change),
            web.get("/threat-center/v1/cases/{id}/notes", self.list_notes),
            web.post("/threat-center/v1/cases/{id}/notes", self.add_note),
            web.post("/search/v2/events", self.search_events),
        ]

    async def sign_in(self, request: web.Request) -> web.Response:
        body = await request.json()
        if body != {"grant_type": "client_credentials", **SETTINGS}:
            raise ErrorResponse(401, "Unauthorized")
        seconds = int(self.session_lifetime.total_seconds())
        return self.json({"access_token": self.begin_session(), "expires_in": seconds})

    def admit(self, request: web.Request) -> None:
        if any(request.path.startswith(path) for path in self.forbidden):
            raise ErrorResponse(403, "Forbidden")

    async def search(self, request: web.Request) -> web.Response:
        self.admit(request)
        body = await request.json()
        self.asked.append(body)
        kind = request.path.rpartition("/")[2]
        created = "caseCreationTimestamp" if kind == "cases" else "alertCreationTimestamp"
        if body["orderBy"] != [f"{created} ASC"] or body["fields"] != ["*"]:
            raise ErrorResponse(400, "this simulator sorts by creation alone")
        if not 1 <= body["limit"] <= MOST_ROWS or "filter" not in body:
            raise ErrorResponse(400, "limit or filter")
        if self.errors:
            return self.json({"errors": self.errors})
        cases = self.siem.created(_window(body))
        page = cases[: body["limit"]]
        if any(case.id in self.siem.poisoned for case in page):
            raise ErrorResponse(500, "Internal error")
        if self._takes(Fault.PARTIAL):
            page = page[: len(page) // 2]
        rows = [self.show_as(case, kind) for case in page]
        return self.json({"rows": rows, "totalRows": len(rows)})

    async def get_record(self, request: web.Request) -> web.Response:
        self.admit(request)
        kind = request.path.split("/")[3]
        return self.json(self.show_as(self.get(request.match_info["id"]), kind))

    async def change(self, request: web.Request) -> web.Response:
        self.admit(request)
        case, body = self.get(request.match_info["id"]), await request.json()
        if body["stage"] == "CLOSED" and not body.get("closedReason"):
            raise ErrorResponse(400, "closedReason is required")
        self.changes.append(body)
        words = {word: IncidentStatus(status) for status, word in _STAGES.items()}
        status = words.get(body["stage"], IncidentStatus.ACTIVE)
        case = self.siem.put(replace(case, status=status, changed_at=self.siem.clock.now()))
        return self.json(self.show(case))

    async def list_notes(self, request: web.Request) -> web.Response:
        self.admit(request)
        texts = self.siem.comments(self.get(request.match_info["id"]).id)
        # Notes are returned as they were written, as HTML
        return self.json({"notes": [{"note": _to_markup(text)} for text in texts]})

    async def add_note(self, request: web.Request) -> web.Response:
        self.admit(request)
        case, body = self.get(request.match_info["id"]), await request.json()
        self.siem.comment(case.id, _show_markup(body["note"]))
        return self.json({"note": body["note"]}, status=201)

    async def search_events(self, request: web.Request) -> web.Response:
        self.admit(request)
        body = await request.json()
        wanted = {
            Entity(KINDS[name], re.sub(r"\\(.)", r"\1", value))
            for name, value in _TERM.findall(body["filter"])
            if name in KINDS
        }
        found: list[LogEvent] = []
        for entity in wanted:
            found += self.logged(_window(body), entity, limit=body["limit"])
        rows = [self.show_log_event(one) for one in found]
        fields = body["fields"]
        return self.json({"rows": [{k: v for k, v in row.items() if k in fields} for row in rows]})

    # shapes

    def show_as(self, case: Case, kind: str) -> dict[str, Any]:
        record = self.show(case)
        if kind == "alerts":
            record["alertCreationTimestamp"] = record.pop("caseCreationTimestamp")
        return record

    def render(self, case: Case) -> dict[str, Any]:
        is_known = isinstance(case.severity, Severity)
        return {
            "caseId": case.id,
            "alertId": case.id,
            "caseNumber": str(case.number),
            "alertName": case.title,
            "alertDescriptionRt": _to_markup(case.description),
            "priority": str(case.severity).upper() if is_known else case.severity,
            "stage": _STAGES[case.status],
            "riskScore": 70,
            "caseCreationTimestamp": count_microseconds(case.created_at),
            "lastModifiedTimestamp": count_microseconds(case.changed_at),
            "approxLogTime": count_microseconds(case.created_at),
            "srcEndpoints": [],
            "destIps": [],
            **{
                member: [entity.value for entity in case.entities if entity.kind is kind]
                for kind, member in MEMBERS.items()
            },
            "mitres": [
                {
                    "tactic": "Credential Access",
                    "tacticKey": "TA0006",
                    "technique": "Brute Force",
                    "techniqueKey": "T1110",
                }
            ],
            "rules": [{"ruleId": "fact-1", "ruleName": "Many failed sign-ins"}],
            "tags": [],
        }

    def render_log_event(self, log_event: LogEvent) -> dict[str, Any]:
        named = {
            name: entity.value
            for entity in log_event.entities
            for name, kind in KINDS.items()
            if kind is entity.kind
        }
        return {
            "id": log_event.id,
            "approxLogTime": count_microseconds(log_event.occurred_at),
            "activity_type": log_event.text,
            **named,
        }


def _window(body: dict[str, Any]) -> Window:
    times = (datetime.fromisoformat(body[name]) for name in ("startTime", "endTime"))
    start, end = times
    return Window(start, max(end, start + timedelta(seconds=1)))


def _to_markup(text: str) -> str:
    return html.escape(text, quote=False).replace("\n", "<br>")


def _show_markup(markup: str) -> str:
    """Return what a browser shows of a note."""
    return html.unescape(re.sub(r"<[^>]*>", "", markup.replace("<br>", "\n")))


if __name__ == "__main__":
    run_simulator(ExabeamSimulator)
