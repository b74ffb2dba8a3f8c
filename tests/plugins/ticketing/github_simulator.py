"""Simulator of GitHub's REST API, as far as the tracker uses it, with its quirks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from aiohttp import web

from tocsin.testing import ErrorResponse, ReceiverSimulator, RemoteObject
from tocsin.testing.conformance import ADDRESSES

TOKEN = "a token of GitHub"
REPOSITORY = "example/soc"
_LONGEST = 65_536


class GitHubSimulator(ReceiverSimulator):
    search_delay = timedelta(seconds=45)
    permissions: ClassVar = ("push or triage",)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.issues: dict[str, dict[str, Any]] = {}
        self.moved: set[str] = set()
        """The numbers of issues that are in another repository by now."""
        self.deleted: set[str] = set()

    def routes(self) -> list[web.RouteDef]:
        home = f"/repos/{REPOSITORY}"
        return [
            web.get(home, self.repository),
            web.get(home + "/assignees/{name}", self.assignee),
            web.get(home + "/issues", self.listed),
            web.post(home + "/issues", self.create),
            web.get(home + "/issues/{number}", self.show),
            web.patch(home + "/issues/{number}", self.change),
            web.get(home + "/issues/{number}/comments", self.comments),
            web.post(home + "/issues/{number}/comments", self.comment),
            web.get("/search/issues", self.search),
        ]

    def is_signed(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == f"Bearer {TOKEN}"

    def objects(self) -> list[RemoteObject]:
        return [
            RemoteObject(
                id=number,
                observables=[address for address in ADDRESSES if address in issue["body"]],
                notes=[comment["body"] for comment in issue["comments"]],
                is_open=issue["state"] == "open",
            )
            for number, issue in self.issues.items()
        ]

    def remove(self, identifier: str) -> None:
        del self.issues[identifier]

    def file(self, count: int) -> None:
        """Make so many issues, as people do."""
        for _ in range(count):
            made = {"title": "Another", "body": "", "labels": [], "made_at": self.clock.now()}
            number = self.next_number()
            self.issues[str(number)] = made | {"number": number, "state": "open", "comments": []}

    async def repository(self, request: web.Request) -> web.Response:
        may = not self.lacks
        return self.json({"has_issues": True, "permissions": {"push": False, "triage": may}})

    async def assignee(self, request: web.Request) -> web.Response:
        if request.match_info["name"] != "octocat":
            raise ErrorResponse(404, "Not Found")
        return web.Response(status=204)

    async def create(self, request: web.Request) -> web.Response:
        issue = await request.json()
        if not 1 <= len(issue["title"]) <= 256 or len(issue["body"]) > _LONGEST:
            raise ErrorResponse(422, "Validation Failed")
        if not set(issue.get("assignees", ())) <= {"octocat"}:
            raise ErrorResponse(422, "Validation Failed: assignees")
        number = self.next_number()
        made = {**issue, "number": number, "state": "open", "comments": []}
        self.issues[str(number)] = made | {"made_at": self.clock.now()}
        return self.json(self._shown(made), 201)

    async def listed(self, request: web.Request) -> web.Response:
        assert request.query["state"] == "all", "closed ones are not listed by default"
        found = sorted(self.issues.values(), key=lambda issue: -issue["number"])
        return self.json([self._shown(issue) for issue in found[: int(request.query["per_page"])]])

    async def search(self, request: web.Request) -> web.Response:
        text = request.query["q"].partition('"')[2].rstrip('"')
        found = [
            self._shown(issue)
            for issue in self.issues.values()
            if text in issue["body"] and self.is_searchable(issue["made_at"])
        ]
        return self.json({"total_count": len(found), "items": found})

    async def show(self, request: web.Request) -> web.Response:
        return self.json(self._shown(self._issue(request)))

    async def change(self, request: web.Request) -> web.Response:
        issue, change = self._issue(request), await request.json()
        if change.get("state_reason", "completed") not in ("completed", "not_planned", "duplicate"):
            raise ErrorResponse(422, "Validation Failed")
        issue |= change
        return self.json(self._shown(issue))

    async def comments(self, request: web.Request) -> web.Response:
        size, page = int(request.query["per_page"]), int(request.query["page"])
        return self.json(self._issue(request)["comments"][size * (page - 1) : size * page])

    async def comment(self, request: web.Request) -> web.Response:
        comment = await request.json()
        if not 1 <= len(comment["body"]) <= _LONGEST:
            raise ErrorResponse(422, "body is too long (maximum is 65536 characters)")
        self._issue(request)["comments"].append(comment)
        return self.json({}, 201)

    def _issue(self, request: web.Request) -> dict[str, Any]:
        number = request.match_info["number"]
        if number in self.moved:
            raise ErrorResponse(301, "Moved Permanently")
        if number in self.deleted:
            raise ErrorResponse(410, "This issue was deleted")
        if (found := self.issues.get(request.match_info["number"])) is None:
            raise ErrorResponse(404, "Not Found")
        return found

    @staticmethod
    def _shown(issue: dict[str, Any]) -> dict[str, Any]:
        shown = {name: value for name, value in issue.items() if name != "made_at"}
        labels = [{"name": label} for label in issue["labels"]]
        return shown | {"labels": labels, "comments": len(issue["comments"])}
