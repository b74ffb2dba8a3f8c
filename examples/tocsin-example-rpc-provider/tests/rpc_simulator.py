"""Simulator of a JSON-RPC API with POST only, the token in the body, and errors with status 200."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from tocsin import Severity, Window
from tocsin.testing import Case, ErrorResponse, Simulator, run_simulator

LEVELS = {severity: str(level) for level, severity in enumerate(Severity, 1)}
STATES = {"New": "open", "Active": "assigned", "Closed": "closed"}


class RpcSimulator(Simulator):
    """Accepts one user with a password, and responds to two methods."""

    user = ("tocsin", "a secret")
    open_paths = ("/login",)

    def routes(self) -> list[web.RouteDef]:
        """Return the routes."""
        return [web.post("/login", self.sign_in), web.post("/rpc", self.call)]

    async def is_signed(self, request: web.Request) -> bool:
        """Return whether the token in the body belongs to a session."""
        content = await request.json()
        return self.has_session(content["token"])

    def refuse(self, refusal: ErrorResponse) -> web.Response:
        """Return an error, with status 200."""
        error: dict[str, Any] = {"code": refusal.status, "message": refusal.reason}
        delay = refusal.headers.get("Retry-After", "")
        if delay.isdigit():
            error["retry_after"] = int(delay)
        return self.json({"error": error})

    async def sign_in(self, request: web.Request) -> web.Response:
        """Return a token for the known user."""
        content = await request.json()
        if (content["user"], content["password"]) != self.user:
            raise ErrorResponse(401, "unknown user or password")
        seconds = int(self.session_lifetime.total_seconds())
        return self.json({"result": {"token": self.begin_session(), "expires_in": seconds}})

    async def call(self, request: web.Request) -> web.Response:
        """Respond to a call."""
        content = await request.json()
        params = content["params"]
        match content["method"]:
            case "cases.search":
                return self.json({"result": self.search(params)})
            case "cases.get":
                return self.json({"result": self.show(self.get(params["id"]))})
        raise ErrorResponse(400, "unknown method")

    def search(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return a page of the cases in a time range, by default of all cases."""
        window = Window(
            from_milliseconds(params.get("updated_from", "0")),
            from_milliseconds(params.get("updated_to", "4102444800000")),
        )
        page = self.page(window, limit=params["limit"], token=params.get("page"))
        return {"cases": [self.show(case) for case in page.cases], "next": page.next_token}

    def render(self, case: Case) -> dict[str, Any]:
        """Return a case in the API's format."""
        return {
            "id": case.id,
            "subject": case.title,
            "text": case.description,
            "level": LEVELS.get(case.severity, case.severity),
            "state": STATES[case.status],
            "opened": to_milliseconds(case.created_at),
            "updated": to_milliseconds(case.changed_at),
            "addresses": [entity.value for entity in case.entities],
        }


def to_milliseconds(moment: datetime) -> str:
    """Return a time as the API writes it."""
    return str(int(moment.timestamp() * 1000))


def from_milliseconds(text: str) -> datetime:
    """Return the time for a number of milliseconds."""
    return datetime.fromtimestamp(int(text) / 1000, UTC)


if __name__ == "__main__":
    run_simulator(RpcSimulator)
