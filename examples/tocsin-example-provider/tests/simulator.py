"""Example's API, as far as the provider uses it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from aiohttp import web

from tocsin import Severity, Window
from tocsin.testing import Case, Refusal, Simulator

SEVERITIES = {Severity.INFORMATIONAL: "info"}
STATUSES = {"New": "open", "Active": "in_progress", "Closed": "closed"}


class ExampleSimulator(Simulator):
    """Signs in with a client's id and secret, lists cases by their time of change."""

    client = ("tocsin", "a secret")
    open_paths = ("/oauth/token",)

    def routes(self) -> list[web.RouteDef]:
        """Return what the provider asks for."""
        return [
            web.post("/oauth/token", self.sign_in),
            web.get("/api/v1/cases", self.list_cases),
            web.get("/api/v1/cases/{id}", self.get_case),
        ]

    async def sign_in(self, request: web.Request) -> web.Response:
        """Answer a token to the client that is known."""
        form = await request.post()
        if (form["client_id"], form["client_secret"]) != self.client:
            raise Refusal(401, "invalid_client")
        seconds = int(self.session_lifetime.total_seconds())
        return self.json({"access_token": self.begin_session(), "expires_in": seconds})

    async def list_cases(self, request: web.Request) -> web.Response:
        """Answer a page; without bounds, of everything."""
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
        """Answer one case."""
        return self.json(self.show(self.get(request.match_info["id"])))

    def render(self, case: Case) -> dict[str, Any]:
        """Return a case as Example writes it."""
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
            "entities": [{"type": it.kind.value, "value": it.value} for it in case.entities],
        }
