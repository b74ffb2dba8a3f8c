"""Simulator of Azure: the parts of Entra, Resource Manager and Sentinel that the channel uses."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any, ClassVar
from uuid import UUID

from aiohttp import web

from tocsin.testing import ErrorResponse, ReceiverSimulator, RemoteObject

TENANT = "contoso.example.com"
CLIENT_ID = "2046feea-040d-4a46-9e2b-91c2941bfa70"
CLIENT_SECRET = "a secret of an app"
SUBSCRIPTION = "d0cfe6b2-9ac0-4464-9919-dccaee2e48c0"
WORKSPACE = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/soc"
    "/providers/Microsoft.OperationalInsights/workspaces/soc-logs"
)
INCIDENTS = f"{WORKSPACE}/providers/Microsoft.SecurityInsights/incidents"
SCOPE = "https://management.azure.com/.default"
_ROLE = "Microsoft.SecurityInsights/incidents/"
_READ_ONLY = ("incidentNumber", "incidentUrl", "lastModifiedTimeUtc")
_REASONS = {
    "TruePositive": ("SuspiciousActivity",),
    "BenignPositive": ("SuspiciousButExpected",),
    "FalsePositive": ("IncorrectAlertLogic", "InaccurateData"),
    "Undetermined": (None,),
}
_ENTITY = re.compile(r"^- \S+ `(.+)` #[0-9a-f]{12}$", re.MULTILINE)


class AzureSimulator(ReceiverSimulator):
    permissions: ClassVar = (
        f"{_ROLE}read",
        f"{_ROLE}write",
        f"{_ROLE}comments/read",
        f"{_ROLE}comments/write",
    )
    open_paths = (f"/{TENANT}/oauth2/v2.0/token",)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.roles: list[dict[str, Any]] = [{"actions": [f"{_ROLE}*"]}]
        self.page = 2
        self.races = 0
        """How often someone else changes an incident before its PUT arrives."""
        self.conflicts = False
        """Whether every new incident causes a conflict."""
        self.incidents: dict[str, dict[str, Any]] = {}
        self.comments: dict[str, dict[str, dict[str, Any]]] = {}
        self._tokens: dict[str, datetime] = {}

    def routes(self) -> list[web.RouteDef]:
        comments = INCIDENTS + "/{id}/comments"
        return [
            web.post(self.open_paths[0], self.sign_in),
            web.get(f"{WORKSPACE}/providers/Microsoft.Authorization/permissions", self.rights),
            web.get(INCIDENTS, self.first),
            web.get(INCIDENTS + "/{id}", self.show),
            web.put(INCIDENTS + "/{id}", self.put),
            web.get(comments, self.said),
            web.get(comments + "/{name}", self.comment_of),
            web.put(comments + "/{name}", self.say),
        ]

    def is_signed(self, request: web.Request) -> bool:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return self._tokens.get(token, self.clock.now()) > self.clock.now()

    def objects(self) -> list[RemoteObject]:
        return [self._object(name, incident) for name, incident in self.incidents.items()]

    def texts(self, identifier: str) -> list[str]:
        """Return the comments of an incident."""
        return [record["properties"]["message"] for record in self.comments[identifier].values()]

    def _object(self, name: str, incident: dict[str, Any]) -> RemoteObject:
        texts = self.texts(name)
        return RemoteObject(
            id=name,
            observables=[value for text in texts for value in _ENTITY.findall(text)],
            notes=[text for text in texts if not _ENTITY.search(text)],
            is_open=incident["properties"]["status"] != "Closed",
        )

    def remove(self, identifier: str) -> None:
        del self.incidents[identifier], self.comments[identifier]

    def change(self, identifier: str, **properties: Any) -> None:
        """Change an incident, as an analyst does."""
        incident = self.incidents[identifier]
        incident["properties"] |= properties
        incident["etag"] = f'"{self.next_number()}"'

    async def sign_in(self, request: web.Request) -> web.Response:
        form = dict(await request.post())
        if form.get("client_id") != CLIENT_ID or form.get("scope") != SCOPE:
            raise ErrorResponse(400, "AADSTS700016: there is no such application")
        if form.get("client_secret") != CLIENT_SECRET:
            raise ErrorResponse(401, "AADSTS7000215: Invalid client secret provided")
        token = f"token-{self.next_number()}"
        self._tokens[token] = self.clock.now() + timedelta(seconds=3599)
        answer = {"token_type": "Bearer", "expires_in": 3599, "access_token": token}
        return self.json(answer)

    async def rights(self, request: web.Request) -> web.Response:
        self._expect_version(request, "2022-04-01")
        if "Microsoft.Authorization/permissions/read" in self.lacks:
            raise ErrorResponse(403, "AuthorizationFailed")
        return self.json(
            {"value": [{"notActions": sorted(self.lacks), **role} for role in self.roles]}
        )

    async def first(self, request: web.Request) -> web.Response:
        self._expect_version(request)
        return self.json({"value": list(self.incidents.values())[: int(request.query["$top"])]})

    async def show(self, request: web.Request) -> web.Response:
        self._expect_version(request)
        return self.json(self._incident(request))

    async def put(self, request: web.Request) -> web.Response:
        self._expect_version(request)
        name, body = str(UUID(request.match_info["id"])), await request.json()
        if any("." in member for member in body):
            raise ErrorResponse(400, "Invalid JavaScript property identifier character: .")
        if self.races and name in self.incidents:
            self.races -= 1
            self.change(name, owner={"assignedTo": "Ann"})
        there = self.incidents.get(name)
        self._expect_current(request, there, body)
        if there is None and self.conflicts:
            raise ErrorResponse(
                409, f"Newer version of resource '{name}' exists. Data was not saved"
            )
        told = {k: v for k, v in body["properties"].items() if k not in _READ_ONLY}
        _expect_incident(told)
        number = there["properties"]["incidentNumber"] if there else self.next_number()
        url = f"https://portal.azure.com/#asset/…/incidents/{name}"
        made = {"incidentNumber": number, "incidentUrl": url, **told}
        etag = f'"{self.next_number()}"'
        self.incidents[name] = {"name": name, "etag": etag, "properties": made}
        self.comments.setdefault(name, {})
        return self.json(self.incidents[name], 200 if there else 201)

    async def said(self, request: web.Request) -> web.Response:
        self._expect_version(request)
        self._incident(request)
        begin = int(request.query.get("$skipToken", 0))
        there = list(self.comments[request.match_info["id"]].values())
        answer: dict[str, Any] = {"value": there[begin : begin + self.page]}
        if begin + self.page < len(there):
            # The port is named, and the host is that of Azure, whoever asked
            query = f"api-version=2025-09-01&$skipToken={begin + self.page}"
            answer["nextLink"] = f"https://management.azure.com:443{request.path}?{query}"
        return self.json(answer)

    async def comment_of(self, request: web.Request) -> web.Response:
        said = self.comments.get(request.match_info["id"], {})
        if (found := said.get(request.match_info["name"])) is None:
            raise ErrorResponse(404, "NotFound")
        return self.json(found)

    async def say(self, request: web.Request) -> web.Response:
        self._expect_version(request)
        self._incident(request)
        comments = self.comments[request.match_info["id"]]
        name, body = str(UUID(request.match_info["name"])), await request.json()
        self._expect_current(request, comments.get(name), body)
        if not 0 < len(body["properties"]["message"].encode("utf-16-le")) <= 60_000:
            raise ErrorResponse(400, "a comment has 30,000 characters at most")
        if name not in comments and len(comments) == 100:
            raise ErrorResponse(400, "an incident has 100 comments at most")
        comments[name] = {"name": name, "etag": f'"{self.next_number()}"', **body}
        return self.json(comments[name], 201)

    def _incident(self, request: web.Request) -> dict[str, Any]:
        found = self.incidents.get(request.match_info["id"])
        if found is None:
            raise ErrorResponse(404, "Incident not found")
        return found

    def _expect_current(self, request: web.Request, there: Any, body: Any) -> None:
        etag = there["etag"] if there else None
        if request.headers.get("If-Match", etag) != etag:
            raise ErrorResponse(412, "the condition is not met")
        if body.get("etag") != etag:
            raise ErrorResponse(409, "Newer version of resource exists. Data was not saved")

    def _expect_version(self, request: web.Request, version: str = "2025-09-01") -> None:
        if request.query.get("api-version") != version:
            raise ErrorResponse(400, "MissingApiVersionParameter")


def _expect_incident(told: dict[str, Any]) -> None:
    if not told.get("title") or told.get("severity") not in (
        "High",
        "Medium",
        "Low",
        "Informational",
    ):
        raise ErrorResponse(400, "an incident needs a title and a severity")
    if len(told.get("description", "")) > 5_000:
        raise ErrorResponse(400, "a description has 5,000 characters at most")
    reasons = _REASONS.get(told.get("classification", ""))
    if told.get("status") == "Closed" and (
        reasons is None or told.get("classificationReason") not in reasons
    ):
        raise ErrorResponse(400, "an incident is closed with a classification and its reason")
