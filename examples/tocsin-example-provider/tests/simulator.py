"""Simulator of Example's API, limited to the parts that the provider uses."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from aiohttp import web

from tocsin import Entity, EntityKind, IncidentStatus, Severity, Window
from tocsin.testing import Case, ErrorResponse, LogEvent, Simulator, run_simulator

SEVERITIES: dict[Severity | str, str] = {Severity.INFORMATIONAL: "info"}
STATUSES = {"New": "open", "Active": "in_progress", "Closed": "closed"}


class ExampleSimulator(Simulator):
    """Signs in with a client's id and secret, and lists cases by their time of change."""

    client = ("tocsin", "a secret")
    open_paths = ("/oauth/token",)

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        return [
            web.post("/oauth/token", self.sign_in),
            web.get("/api/v1/cases", self.list_cases),
            web.get("/api/v1/cases/{id}", self.get_case),
            web.patch("/api/v1/cases/{id}", self.change_case),
            web.get("/api/v1/cases/{id}/comments", self.list_comments),
            web.post("/api/v1/cases/{id}/comments", self.add_comment),
            web.get("/api/v1/log", self.search_log),
        ]

    async def sign_in(self, request: web.Request) -> web.Response:
        """Return a token for the known client."""
        form = await request.post()
        if (form["client_id"], form["client_secret"]) != self.client:
            raise ErrorResponse(401, "invalid_client")
        seconds = int(self.session_lifetime.total_seconds())
        return self.json({"access_token": self.begin_session(), "expires_in": seconds})

    async def list_cases(self, request: web.Request) -> web.Response:
        """Return a page of cases; without bounds, of all."""
        query = request.query
        page = self.page(
            Window(
                datetime.fromisoformat(query.get("changed_from", "2000-01-01T00:00:00Z")),
                datetime.fromisoformat(query.get("changed_to", "2100-01-01T00:00:00Z")),
            ),
            limit=int(query["limit"]),
            token=query.get("page_token"),
        )
        cases = [self.show(case) for case in page.cases]
        return self.json({"cases": cases, "next_page_token": page.next_token})

    async def get_case(self, request: web.Request) -> web.Response:
        """Return one case."""
        return self.json(self.show(self.get(request.match_info["id"])))

    async def change_case(self, request: web.Request) -> web.Response:
        """Change the status of a case."""
        case, change = self.get(request.match_info["id"]), await request.json()
        [status] = [status for status, word in STATUSES.items() if word == change["status"]]
        now = self.siem.clock.now()
        changed = replace(case, status=IncidentStatus(status), changed_at=now)
        return self.json(self.show(self.siem.put(changed)))

    async def list_comments(self, request: web.Request) -> web.Response:
        """Return the comments on a case."""
        case = self.get(request.match_info["id"])
        return self.json({"comments": [{"text": text} for text in self.siem.comments(case.id)]})

    async def add_comment(self, request: web.Request) -> web.Response:
        """Store a comment on a case."""
        case = self.get(request.match_info["id"])
        comment = await request.json()
        self.siem.comment(case.id, comment["text"])
        return self.json(comment, 201)

    async def search_log(self, request: web.Request) -> web.Response:
        """Return a page of the log entries of an entity, the latest first."""
        query = request.query
        offset = int(query.get("page_token", 0))
        page = self.logged(
            Window(
                datetime.fromisoformat(query["logged_from"]),
                datetime.fromisoformat(query["logged_to"]),
            ),
            Entity(EntityKind(query["entity_type"]), query["entity_value"]),
            limit=int(query["limit"]),
            offset=offset,
        )
        entries = [self.show_log_event(log_event) for log_event in page]
        token = str(offset + len(page)) if page else None
        return self.json({"entries": entries, "next_page_token": token})

    def render_log_event(self, log_event: LogEvent) -> dict[str, Any]:
        """Return a log entry in Example's format."""
        return {
            "id": log_event.id,
            "logged_at": log_event.occurred_at.isoformat(),
            "text": log_event.text,
            "entities": [
                {"type": entity.kind.value, "value": entity.value} for entity in log_event.entities
            ],
        }

    def render(self, case: Case) -> dict[str, Any]:
        """Return a case in Example's format."""
        return {
            "id": case.id,
            "number": case.number,
            "title": case.title,
            "description": case.description,
            "severity": SEVERITIES.get(case.severity, case.severity.lower()),
            "status": "merged" if case.merged_into else STATUSES[case.status],
            "merged_into": case.merged_into,
            "created_at": case.created_at.isoformat(),
            "changed_at": case.changed_at.isoformat(),
            "entities": [
                {"type": entity.kind.value, "value": entity.value} for entity in case.entities
            ],
        }


if __name__ == "__main__":
    run_simulator(ExampleSimulator)
