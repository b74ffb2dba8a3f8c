"""Simulator of GitLab's REST API, as far as the tracker uses it, with its quirks."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any, ClassVar

from aiohttp import web

from tocsin.testing import ErrorResponse, ReceiverSimulator, RemoteObject
from tocsin.testing.conformance import ADDRESSES

TOKEN = "glpat-a token of GitLab"
PROJECT = "example/soc"
_ROLES = {"Planner": 15, "Guest": 10}
_NOT_INDEXED = re.compile(r"<[^>]*>|[A-Za-z0-9+/@]{50,}")  # tags, comments, and long words
_WORD = re.compile(r"[a-z0-9]+")
_QUICK_ACTION = re.compile(r"^/(?:close|assign|confidential|label)\b[^\n]*", re.MULTILINE)
_HIDDEN = 30  # notes on each full page that are about what the token may not see


class GitLabSimulator(ReceiverSimulator):
    search_delay = timedelta(seconds=45)
    permissions: ClassVar = ("Planner",)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.issues: dict[str, dict[str, Any]] = {}

    def routes(self) -> list[web.RouteDef]:
        home = "/api/v4/projects/{project}"
        return [
            web.get(home, self.project),
            web.get(home + "/members/all", self.members),
            web.get(home + "/issues", self.listed),
            web.post(home + "/issues", self.create),
            web.get(home + "/issues/{iid}", self.show),
            web.put(home + "/issues/{iid}", self.change),
            web.get(home + "/issues/{iid}/notes", self.notes),
            web.post(home + "/issues/{iid}/notes", self.note),
        ]

    def is_signed(self, request: web.Request) -> bool:
        return request.headers.get("PRIVATE-TOKEN") == TOKEN

    def objects(self) -> list[RemoteObject]:
        return [
            RemoteObject(
                id=iid,
                observables=[address for address in ADDRESSES if address in issue["description"]],
                notes=issue["notes"],
                is_open=issue["state"] == "opened",
            )
            for iid, issue in self.issues.items()
        ]

    def remove(self, identifier: str) -> None:
        del self.issues[identifier]

    async def project(self, request: web.Request) -> web.Response:
        self._of_project(request)
        role = _ROLES["Guest" if self.lacks else "Planner"]
        access = {"project_access": {"access_level": role}, "group_access": None}
        facts = {"path_with_namespace": PROJECT, "issues_access_level": "private"}
        return self.json({**facts, "permissions": access})

    async def members(self, request: web.Request) -> web.Response:
        found = [{"id": 7, "username": "j.doe"}, {"id": 8, "username": "j.doe2"}]
        return self.json(
            [member for member in found if request.query["query"] in member["username"]]
        )

    async def create(self, request: web.Request) -> web.Response:
        self._of_project(request)
        given = await request.json()
        if not 1 <= len(given["title"]) <= 255 or "\x00" in str(given):
            raise ErrorResponse(400, "title is invalid")
        iid = self.next_number()
        made = {"iid": iid, "state": "opened", "moved_to_id": None, "notes": [], **given}
        made |= {"labels": given["labels"].split(","), "made_at": self.clock.now()}
        self.issues[str(iid)] = made
        made["description"] = self._acted_on(made, made["description"])
        return self.json(self._shown(made), 201)

    async def listed(self, request: web.Request) -> web.Response:
        self._of_project(request)
        query = request.query
        assert query["scope"] == "all", "else only the issues of the token's user are listed"
        found = sorted(self.issues.values(), key=lambda issue: -issue["iid"])
        if "created_after" in query:
            since = datetime.fromisoformat(query["created_after"])
            found = [issue for issue in found if issue["made_at"] >= since]
        if wanted := query.getall("iids[]", None):
            found = [issue for issue in found if str(issue["iid"]) in wanted]
        if "search" in query:
            wanted = _words(query["search"])
            found = [issue for issue in found if self._matches(issue, wanted)]
        return self.json([self._shown(issue) for issue in found[: int(query["per_page"])]])

    async def show(self, request: web.Request) -> web.Response:
        return self.json(self._shown(self._issue(request)))

    async def change(self, request: web.Request) -> web.Response:
        issue, given = self._issue(request), await request.json()
        if given.pop("state_event", None) == "close":
            issue["state"] = "closed"
        dropped = given.pop("remove_labels", "").split(",")
        kept = [label for label in issue["labels"] if label not in dropped]
        added = [part for part in given.pop("add_labels", "").split(",") if part]
        issue |= {**given, "labels": [*dict.fromkeys([*kept, *added])]}
        return self.json(self._shown(issue))

    async def notes(self, request: web.Request) -> web.Response:
        """Show a page that has fewer than it could, as where notes are about what is hidden."""
        assert request.query["activity_filter"] == "only_comments"
        notes, size = self._issue(request)["notes"][::-1], int(request.query["per_page"])
        page, shown = int(request.query["page"]), max(1, size - _HIDDEN)
        response = self.json([{"body": note} for note in notes[shown * (page - 1) : shown * page]])
        is_last = shown * page >= len(notes)
        response.headers["X-Next-Page"] = "" if is_last else str(page + 1)
        return response

    async def note(self, request: web.Request) -> web.Response:
        issue = self._issue(request)
        text = (await request.json())["body"]
        issue["notes"].append(self._acted_on(issue, text))
        return self.json({}, 201)

    def _of_project(self, request: web.Request) -> None:
        if request.match_info["project"] != PROJECT:
            raise ErrorResponse(404, "404 Project Not Found")

    def _issue(self, request: web.Request) -> dict[str, Any]:
        self._of_project(request)
        if (found := self.issues.get(request.match_info["iid"])) is None:
            raise ErrorResponse(404, "404 Not found")
        return found

    def _matches(self, issue: dict[str, Any], wanted: list[str]) -> bool:
        known = _words(_NOT_INDEXED.sub(" ", issue["description"]))
        found = all(any(term.startswith(word) for term in known) for word in wanted)
        return found and self.is_searchable(issue["made_at"])

    @staticmethod
    def _acted_on(issue: dict[str, Any], text: str) -> str:
        """Return a text without its quick actions, which are done."""
        text = text.replace("\r", "")
        if _QUICK_ACTION.search(text):
            issue["state"] = "closed"
        return _QUICK_ACTION.sub("", text)

    @staticmethod
    def _shown(issue: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in issue.items() if name not in ("notes", "made_at")}


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
