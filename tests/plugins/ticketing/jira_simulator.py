"""Simulator of both Jira APIs, as far as the trackers use them, with their quirks."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any, ClassVar

from aiohttp import encode_basic_auth, web
from jsonschema import Draft202012Validator

import tocsin_templates
from tocsin.testing import ErrorResponse, ReceiverSimulator, RemoteObject
from tocsin.testing.conformance import ADDRESSES

PROJECT, ACCOUNT, TOKEN = "SEC", "soc@example.com", "a token of Jira"
PEOPLE = {"5b10a2844c20165700ede21g", "kim"}
PRIORITIES = ("Lowest", "Low", "Medium", "High", "Highest")
_TYPES = {"10001": "Task", "10002": "Incident"}
_LONGEST = 32_767
_BY_LABEL = re.compile(r'labels = "([^"\s]+)" ORDER BY created ASC')
[_TEMPLATES] = map(Path, tocsin_templates.tocsin_template_paths())
_SCHEMA = json.loads((_TEMPLATES / "jira/body.schema.json").read_text(encoding="utf-8"))
DOCUMENTS = Draft202012Validator({"$defs": _SCHEMA["$defs"], "$ref": "#/$defs/doc"})


@cache
def _is_document(content: str) -> bool:
    """Return whether `content` is one; thousands of requests bring the same few."""
    return DOCUMENTS.is_valid(json.loads(content))


class Rejected(ErrorResponse):
    """400, with Jira's reasons by field."""

    def __init__(self, **errors: str) -> None:
        super().__init__(400, json.dumps(errors))


class JiraSimulator(ReceiverSimulator):
    api: ClassVar[str]
    search_delay = timedelta(seconds=45)
    most_comments: ClassVar[int] = 2
    permissions: ClassVar = (
        "BROWSE_PROJECTS",
        "CREATE_ISSUES",
        "EDIT_ISSUES",
        "ADD_COMMENTS",
        "TRANSITION_ISSUES",
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.issues: dict[str, dict[str, Any]] = {}
        self.screen = {
            name: {"fieldId": name, "name": name.title(), "required": False}
            for name in ("project", "issuetype", "summary", "description", "labels", "assignee")
        }
        self.screen["summary"]["required"] = self.screen["project"]["required"] = True
        self.screen["priority"] = {
            "fieldId": "priority",
            "name": "Priority",
            "required": True,
            "hasDefaultValue": True,
            "allowedValues": [{"name": priority} for priority in PRIORITIES],
        }
        self.transitions = [self.transition("11", "Start", "indeterminate")]
        self.transitions.append(self.transition("31", "Resolve", "done"))
        self.conflicts = 0
        """How many changes are refused, since someone else changes the same."""
        self.someone_closes_first = False

    @staticmethod
    def transition(number: str, name: str, category: str, **fields: Any) -> dict[str, Any]:
        to = {"name": name, "statusCategory": {"key": category}}
        return {"id": number, "name": name, "to": to, "fields": fields}

    def routes(self) -> list[web.RouteDef]:
        issue = f"{self.api}/issue"
        return [
            web.get(f"{self.api}/myself", self.myself),
            web.get(f"{self.api}/mypermissions", self.my_permissions),
            web.get(f"{self.api}/resolution", self.list_resolutions),
            web.get(f"{self.api}/user/assignable/search", self.assignable),
            web.get(issue + "/createmeta/{project}/issuetypes", self.types),
            web.get(issue + "/createmeta/{project}/issuetypes/{type}", self.fields),
            web.post(issue, self.create),
            web.get(f"{self.api}/project/{{project}}/statuses", self.statuses),
            web.post(issue + "/bulkfetch", self.bulk_fetch),
            web.get(issue + "/{key}", self.show),
            web.put(issue + "/{key}", self.change),
            web.get(issue + "/{key}/comment", self.comments),
            web.post(issue + "/{key}/comment", self.comment),
            web.get(issue + "/{key}/transitions", self.offered),
            web.post(issue + "/{key}/transitions", self.take),
            web.get(f"{self.api}/search", self.search),
            web.get(f"{self.api}/search/jql", self.search),
        ]

    # what a test uses

    def objects(self) -> list[RemoteObject]:
        return [
            RemoteObject(
                id=key,
                observables=[
                    address
                    for address in ADDRESSES
                    if address in str(issue["fields"]["description"])
                ],
                notes=[self.words(comment["body"]) for comment in issue["comments"]],
                is_open=issue["fields"]["status"]["statusCategory"]["key"] != "done",
            )
            for key, issue in self.issues.items()
        ]

    def remove(self, identifier: str) -> None:
        del self.issues[identifier]

    def words(self, body: Any) -> str:
        raise NotImplementedError

    def judge_text(self, field: str, text: Any) -> None:
        raise NotImplementedError

    # who asks

    async def myself(self, request: web.Request) -> web.Response:
        return self.json({"displayName": "Tocsin", "active": True})

    async def list_resolutions(self, request: web.Request) -> web.Response:
        return self.json([{"id": "1", "name": "Done"}, {"id": "2", "name": "Duplicate"}])

    async def my_permissions(self, request: web.Request) -> web.Response:
        self._see(request.query["projectKey"])
        asked = request.query["permissions"].split(",")
        return self.json(
            {
                "permissions": {
                    permission: {"havePermission": permission not in self.lacks}
                    for permission in asked
                }
            }
        )

    async def assignable(self, request: web.Request) -> web.Response:
        self._see(request.query["project"])
        wanted = request.query.get("accountId") or request.query.get("username")
        return self.json([self.person(person) for person in PEOPLE if person == wanted])

    def person(self, name: str) -> dict[str, str]:
        raise NotImplementedError

    # what may be made

    async def types(self, request: web.Request) -> web.Response:
        self._see(request.match_info["project"])
        return self.page(
            [{"id": number, "name": name} for number, name in _TYPES.items()], request, "issueTypes"
        )

    async def fields(self, request: web.Request) -> web.Response:
        self._see(request.match_info["project"])
        return self.page(list(self.screen.values()), request, "fields")

    def page(self, found: list[Any], request: web.Request, name: str) -> web.Response:
        raise NotImplementedError

    async def create(self, request: web.Request) -> web.Response:
        fields = (await request.json())["fields"]
        if fields.get("project") != {"key": PROJECT} or "CREATE_ISSUES" in self.lacks:
            raise Rejected(project="valid project is required")
        if fields["issuetype"].get("name") not in _TYPES.values():
            raise Rejected(issuetype="Specify a valid issue type")
        self._judge(fields)
        for name, field in self.screen.items():
            if field["required"] and not field.get("hasDefaultValue") and not fields.get(name):
                raise Rejected(**{name: f"{field['name']} is required."})
        number = self.next_number()
        key = f"{PROJECT}-{number}"
        fields |= {"status": {"name": "To Do", "statusCategory": {"key": "new"}}}
        made = {"id": str(10_000 + number), "key": key, "fields": fields, "comments": []}
        self.issues[key] = made | {"made_at": self.clock.now()}
        return self.json(
            {"id": made["id"], "key": key, "self": f"{self.url}{request.path}/{number}"}, 201
        )

    def _judge(self, fields: dict[str, Any]) -> None:
        for name, value in fields.items():
            if name not in self.screen:
                where = "It is not on the appropriate screen, or unknown."
                raise Rejected(**{name: f"Field '{name}' cannot be set. {where}"})
            if "\x00" in json.dumps(value) or "\\u0000" in json.dumps(value):
                raise ErrorResponse(500, "invalid byte sequence for encoding UTF8: 0x00")
            if name in ("description", "customfield_10050"):
                self.judge_text(name, value)
        summary = fields.get("summary", "x")
        if "\n" in summary or "\r" in summary:
            raise Rejected(summary="The summary is invalid because it contains newline characters.")
        if len(summary) > 255:
            raise Rejected(summary="Summary must be less than 255 characters.")
        if any(" " in label for label in fields.get("labels", ())):
            raise Rejected(labels="The label contains spaces which is invalid.")
        if (name := fields.get("priority", {"name": "Low"})["name"]) not in PRIORITIES:
            raise Rejected(priority=f"Priority name '{name}' is not valid")
        if "assignee" in fields and fields["assignee"] not in map(self.person, PEOPLE):
            raise Rejected(assignee="User cannot be assigned issues.")

    # issues

    async def search(self, request: web.Request) -> web.Response:
        found = _BY_LABEL.fullmatch(request.query["jql"])
        if found is None:
            raise ErrorResponse(400, "Error in the JQL Query")
        issues = [
            {
                "id": issue["id"],
                "key": issue["key"],
                "fields": {"labels": issue["fields"]["labels"]},
            }
            for issue in self.issues.values()
            if found[1] in issue["fields"]["labels"] and self.is_searchable(issue["made_at"])
        ]
        return self.json({"issues": issues[: int(request.query["maxResults"])], "isLast": True})

    async def show(self, request: web.Request) -> web.Response:
        issue = self._issue(request)
        fields = {part: issue["fields"].get(part) for part in request.query["fields"].split(",")}
        return self.json({"id": issue["id"], "key": issue["key"], "fields": fields})

    async def statuses(self, request: web.Request) -> web.Response:
        self._see(request.match_info["project"])
        found = [transition["to"] for transition in self.transitions]
        return self.json([{"name": kind, "statuses": found} for kind in _TYPES.values()])

    async def bulk_fetch(self, request: web.Request) -> web.Response:
        raise ErrorResponse(404, "only Jira Cloud has it")

    async def change(self, request: web.Request) -> web.Response:
        issue = self._issue(request)
        fields = (await request.json())["fields"]
        self._judge(fields)
        if self.conflicts:
            self.conflicts -= 1
            raise ErrorResponse(409, "the issue is changed by someone else")
        issue["fields"] |= fields
        return web.Response(status=204)

    async def comments(self, request: web.Request) -> web.Response:
        start = int(request.query["startAt"])
        size = min(int(request.query["maxResults"]), self.most_comments)
        comments = self._issue(request)["comments"]
        page = {"startAt": start, "maxResults": size, "total": len(comments)}
        return self.json(page | {"comments": comments[start : start + size]})

    async def comment(self, request: web.Request) -> web.Response:
        issue, comment = self._issue(request), await request.json()
        self.judge_text("comment", comment["body"])
        issue["comments"].append(comment)
        return self.json({"id": str(self.next_number())}, 201)

    async def offered(self, request: web.Request) -> web.Response:
        assert request.query["expand"] == "transitions.fields", "no fields otherwise"
        self._issue(request)
        return self.json({"transitions": self.transitions})

    async def take(self, request: web.Request) -> web.Response:
        issue, wanted = self._issue(request), await request.json()
        chosen = next(
            transition
            for transition in self.transitions
            if transition["id"] == wanted["transition"]["id"]
        )
        if self.someone_closes_first:
            issue["fields"]["status"] = chosen["to"]
            raise ErrorResponse(400, "It seems that you have tried to perform a workflow operation")
        for name, field in chosen["fields"].items():
            if field["required"] and name not in wanted.get("fields", {}):
                raise Rejected(**{name: f"{field['name']} is required."})
        issue["fields"] |= {**wanted.get("fields", {}), "status": chosen["to"]}
        return web.Response(status=204)

    def _see(self, project: str) -> None:
        if project != PROJECT or "BROWSE_PROJECTS" in self.lacks:
            raise ErrorResponse(404, f"No project could be found with key '{project}'.")

    def _issue(self, request: web.Request) -> dict[str, Any]:
        if (found := self.issues.get(request.match_info["key"])) is None:
            raise ErrorResponse(
                404, "Issue does not exist or you do not have permission to see it."
            )
        return found

    async def _handle(self, request: web.Request, handler: Any) -> web.Response:
        """Answer refusals as Jira does."""
        answer = await super()._handle(request, handler)
        if answer.status >= 400 and isinstance(answer.body, bytes):
            message = json.loads(answer.body)["message"]
            try:
                said = {"errorMessages": [], "errors": json.loads(message)}
            except ValueError:
                said = {"errorMessages": [message], "errors": {}}
            answer.body = json.dumps(said).encode()
        return answer


class CloudSimulator(JiraSimulator):
    """Version 3: documents, accounts by id, and answers to nobody."""

    api = "/rest/api/3"

    def is_signed(self, request: web.Request) -> bool:
        """Let everybody ask: only some of the answers say that nobody is signed in."""
        return self._is_known(request) or request.path != f"{self.api}/myself"

    def _is_known(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == encode_basic_auth(ACCOUNT, TOKEN)

    async def search(self, request: web.Request) -> web.Response:
        if request.path.endswith("/search"):
            raise ErrorResponse(410, "The requested API has been removed.")
        if not self._is_known(request):
            return self.json({"issues": [], "isLast": True})
        return await super().search(request)

    def _issue(self, request: web.Request) -> dict[str, Any]:
        if not self._is_known(request):
            raise ErrorResponse(
                404, "Issue does not exist or you do not have permission to see it."
            )
        return super()._issue(request)

    async def create(self, request: web.Request) -> web.Response:
        if not self._is_known(request):
            raise Rejected(project="valid project is required")
        return await super().create(request)

    async def bulk_fetch(self, request: web.Request) -> web.Response:
        """Leave out what is unknown, and everything for those who are not signed in.

        https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-issues/
        """
        asked = await request.json()
        assert len(asked["issueIdsOrKeys"]) <= 100
        found = [self.issues.get(key) for key in asked["issueIdsOrKeys"] if self._is_known(request)]
        issues = [
            {"key": issue["key"], "fields": {n: issue["fields"].get(n) for n in asked["fields"]}}
            for issue in found
            if issue is not None
        ]
        return self.json({"issues": issues, "issueErrors": []})

    def person(self, name: str) -> dict[str, str]:
        return {"accountId": name}

    def page(self, found: list[Any], request: web.Request, name: str) -> web.Response:
        start, size = int(request.query["startAt"]), 5
        page = {"startAt": start, "maxResults": size, "total": len(found)}
        return self.json(page | {name: found[start : start + size]})

    def judge_text(self, field: str, text: Any) -> None:
        if not isinstance(text, dict):
            raise Rejected(**{field: "Operation value must be an Atlassian Document"})
        content = json.dumps(text, ensure_ascii=False, separators=(",", ":"))
        if not _is_document(content):
            raise ErrorResponse(400, "INVALID_INPUT")
        if len(content) > _LONGEST:
            raise ErrorResponse(400, "CONTENT_LIMIT_EXCEEDED")

    def words(self, body: Any) -> str:
        return body.get("text", "") + " ".join(map(self.words, body.get("content", ())))


class DataCenterSimulator(JiraSimulator):
    """Version 2: wiki markup, users by name, another shape of pages."""

    api = "/rest/api/2"

    def is_signed(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == f"Bearer {TOKEN}"

    def person(self, name: str) -> dict[str, str]:
        return {"name": name}

    async def search(self, request: web.Request) -> web.Response:
        if request.path.endswith("/jql"):
            raise ErrorResponse(404, "null for uri")
        return await super().search(request)

    def page(self, found: list[Any], request: web.Request, name: str) -> web.Response:
        start, size = int(request.query["startAt"]), 5
        shown = found[start : start + size]
        page = {"startAt": start, "maxResults": size, "total": len(found)}
        return self.json(page | {"values": shown, "isLast": start + size >= len(found)})

    def judge_text(self, field: str, text: Any) -> None:
        if not isinstance(text, str):
            raise Rejected(**{field: "Operation value must be a string"})
        if len(text) > _LONGEST:
            words = (
                "The entered text is too long. It exceeds the allowed limit of 32,767 characters."
            )
            raise Rejected(**{field: words})

    def words(self, body: Any) -> str:
        return unescape(body)
