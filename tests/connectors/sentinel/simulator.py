"""Simulator of a Sentinel workspace: the API that the provider uses, with its quirks."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from typing import Any, ClassVar
from urllib.parse import quote
from uuid import NAMESPACE_URL, uuid5

from aiohttp import web
from tests.connectors.microsoft.cloud import CREDENTIALS, MicrosoftSimulator, stamp

from tocsin import Entity, EntityKind, IncidentStatus, Severity, Window
from tocsin.testing import Case, ErrorResponse, ListedPage, run_simulator
from tocsin_connectors.microsoft.clouds import MICROSOFT_CLOUDS

SUBSCRIPTION = "11111111-2222-4333-8444-555555555555"
LOGS = "99999999-8888-4777-8666-555555555555"
WORKSPACE = (
    f"/subscriptions/{SUBSCRIPTION}/resourceGroups/soc/providers/"
    "Microsoft.OperationalInsights/workspaces/soc-logs"
)
INCIDENTS = f"{WORKSPACE}/providers/Microsoft.SecurityInsights/incidents"
SETTINGS = {
    **CREDENTIALS,
    "subscription": SUBSCRIPTION,
    "resource_group": "soc",
    "workspace": "soc-logs",
}
RESPONDER = {
    "actions": ["Microsoft.SecurityInsights/*/read", "Microsoft.SecurityInsights/incidents/*"],
    "notActions": ["Microsoft.SecurityInsights/incidents/*/Delete"],
}
READER = {"actions": ["Microsoft.SecurityInsights/*/read"], "notActions": []}
_ALL = Window(datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC))
_FILTER = re.compile(
    r"properties/lastModifiedTimeUtc ge (\S+) and properties/lastModifiedTimeUtc lt (\S+)"
)
_NEEDED = {"title", "severity", "status"}
_ENTITIES = {
    EntityKind.IP: ("Ip", "address"),
    EntityKind.HOST: ("Host", "hostName"),
    EntityKind.USER: ("Account", "accountName"),
    EntityKind.DOMAIN: ("DnsResolution", "domainName"),
    EntityKind.URL: ("Url", "url"),
}


class SentinelSimulator(MicrosoftSimulator):
    """An alert for each entity of an incident; both come by requests of their own."""

    time_column = "TimeGenerated"
    audiences: ClassVar = {
        "/": MICROSOFT_CLOUDS["public"].management,
        "/v1/workspaces/": MICROSOFT_CLOUDS["public"].logs,
    }

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.roles: list[dict[str, Any]] = [READER, RESPONDER]
        self.partial_error: dict[str, str] | None = None
        """What a query is answered with beside its rows."""
        self.links_count = False
        """Whether the link to the next page counts the incidents before it."""
        self.before_put = lambda: None
        """Called before an incident is replaced."""
        self.labels: tuple[str, ...] = ()
        """Those of each incident."""
        self._comments: dict[tuple[str, str], str] = {}

    def routes(self) -> list[web.RouteDef]:
        incident = INCIDENTS + "/{name}"
        return [
            *self.entra_routes(),
            web.get(WORKSPACE, self.get_workspace),
            web.get(f"{WORKSPACE}/providers/Microsoft.Authorization/permissions", self.get_roles),
            web.get(INCIDENTS, self.list_incidents),
            web.get(incident, self.get_incident),
            web.put(incident, self.put_incident),
            web.post(incident + "/alerts", self.list_alerts),
            web.post(incident + "/entities", self.list_entities),
            web.get(incident + "/comments/{comment}", self.get_comment),
            web.put(incident + "/comments/{comment}", self.put_comment),
            web.post("/v1/workspaces/{id}/query", self.query),
        ]

    async def get_workspace(self, request: web.Request) -> web.Response:
        return self.json({"name": "soc-logs", "properties": {"customerId": LOGS}})

    async def get_roles(self, request: web.Request) -> web.Response:
        return self.json({"value": self.roles})

    async def list_incidents(self, request: web.Request) -> web.Response:
        query, token = request.query, request.query.get("$skipToken")
        if not 0 < int(query["$top"]) <= 1000:
            raise ErrorResponse(400, "$top is out of range")
        window = self._window(query.get("$filter"))
        if token is None and window is not _ALL:
            self._expect_order(query.get("$orderby"))
        turn = self._counted if self.links_count else self.page
        page = turn(window, limit=int(query["$top"]), token=token)
        answer: dict[str, Any] = {"value": [self.show(case) for case in page.cases]}
        if page.next_token:  # left out on the last page; names the port, as Azure does
            rest = "&".join(f"{key}={quote(query[key])}" for key in query if key != "$skipToken")
            answer["nextLink"] = f"{self.url}{INCIDENTS}?{rest}&$skipToken={page.next_token}"
        return self.json(answer)

    def _counted(self, window: Window, *, limit: int, token: str | None) -> ListedPage:
        """Return a page whose token is how many incidents are before the next one."""
        start, size = int(token or 0), min(limit, self.most_per_page)
        cases = self.siem.changed(window)
        following = str(start + size) if start + size < len(cases) else None
        return ListedPage(cases[start : start + size], following)

    @staticmethod
    def _window(text: str | None) -> Window:
        if text is None:
            return _ALL
        match = _FILTER.fullmatch(text)
        if match is None:
            raise ErrorResponse(400, f"Invalid OData query: {text}")
        return Window(*map(datetime.fromisoformat, match.groups()))

    @staticmethod
    def _expect_order(text: str | None) -> None:
        if text != "properties/lastModifiedTimeUtc asc":
            raise ErrorResponse(400, "the order is not that of the filter")

    async def get_incident(self, request: web.Request) -> web.Response:
        return self.json(self.show(self.get(request.match_info["name"])))

    async def put_incident(self, request: web.Request) -> web.Response:
        self.before_put()
        case, body = self.get(request.match_info["name"]), await request.json()
        if body.get("etag") != _etag(case) or request.headers.get("If-Match") != _etag(case):
            raise ErrorResponse(412, "the ETag is of another version")
        told = body["properties"]
        if _NEEDED - told.keys() or (told["status"] == "Closed" and "classification" not in told):
            raise ErrorResponse(400, "something is missing that a replacement needs")
        status = IncidentStatus(told["status"])
        changed = self.siem.put(replace(case, status=status, changed_at=self.siem.clock.now()))
        return self.json(self.show(changed))

    async def list_alerts(self, request: web.Request) -> web.Response:
        case = self.get(request.match_info["name"])
        return self.json({"value": [self.render_alert(case, entity) for entity in case.entities]})

    async def list_entities(self, request: web.Request) -> web.Response:
        case = self.get(request.match_info["name"])
        entities = [self.render_entity(entity) for entity in case.entities]
        return self.json({"entities": entities, "metaData": []})

    async def get_comment(self, request: web.Request) -> web.Response:
        name, comment = request.match_info["name"], request.match_info["comment"]
        if (name, comment) not in self._comments:
            raise ErrorResponse(404, "there is no such comment")
        return self.json({"properties": {"message": self._comments[name, comment]}})

    async def put_comment(self, request: web.Request) -> web.Response:
        case, comment = self.get(request.match_info["name"]), request.match_info["comment"]
        message = (await request.json())["properties"]["message"]
        if len(message) > 30_000:
            raise ErrorResponse(400, "the comment is too long")
        if (case.id, comment) in self._comments:
            raise ErrorResponse(409, "the comment was made before")
        self._comments[case.id, comment] = message
        self.siem.comment(case.id, seen(message))
        return self.json({"properties": {"message": message}}, 201)

    async def query(self, request: web.Request) -> web.Response:
        if request.match_info["id"] != LOGS:
            raise ErrorResponse(404, "there is no such workspace")
        body = await request.json()
        names = ("EventTime", "EventTable", "EventRecord")
        rows = [
            [row["EventTime"], row["EventTable"], json.dumps(row["EventRecord"])]
            for row in self.found_by(body["query"])
            if "EventTime" in row
        ]
        columns = [{"name": name, "type": "dynamic"} for name in names]
        answer: dict[str, Any] = {
            "tables": [{"name": "PrimaryResult", "columns": columns, "rows": rows}]
        }
        if self.partial_error:  # with status 200, as Log Analytics answers
            answer["error"] = self.partial_error
        return self.json(answer)

    def render(self, case: Case) -> dict[str, Any]:
        merged = {
            "mergedIncidentNumber": "7",
            "mergedIncidentUrl": "https://portal.azure.com/#asset/Microsoft_Azure_Security_Insights"
            f"/Incident{INCIDENTS}/{quote(case.merged_into or '', safe='')}",
        }
        return {
            "id": f"{INCIDENTS}/{case.id}",
            "name": case.id,
            "type": "Microsoft.SecurityInsights/Incidents",
            "etag": _etag(case),
            "properties": {
                "title": case.title,
                "description": case.description,
                "severity": severity_of(case),
                "status": case.status.value,
                "incidentNumber": case.number,
                "providerName": "Azure Sentinel",
                "providerIncidentId": str(case.number),
                "createdTimeUtc": stamp(case.created_at),
                "firstActivityTimeUtc": stamp(case.created_at),
                "lastActivityTimeUtc": stamp(case.changed_at),
                "lastModifiedTimeUtc": stamp(case.changed_at),
                "incidentUrl": f"https://portal.azure.com/#asset/Incident{INCIDENTS}/{case.number}",
                "labels": [{"labelName": label, "labelType": "User"} for label in self.labels],
                "owner": {"assignedTo": None, "objectId": None},
                "additionalData": {
                    "alertsCount": len(case.entities),
                    "bookmarksCount": 0,
                    "commentsCount": 0,
                    "tactics": ["InitialAccess"],
                    **(merged if case.merged_into else {}),
                },
            },
        }

    def render_alert(self, case: Case, entity: Entity) -> dict[str, Any]:
        name = str(uuid5(NAMESPACE_URL, f"{case.id} {entity.value}"))
        return {
            "id": f"{INCIDENTS}/Entities/{name}",
            "name": name,
            "kind": "SecurityAlert",
            "properties": {
                "systemAlertId": name,
                "alertDisplayName": f"{entity.value} was seen",
                "severity": "Medium",
                "startTimeUtc": stamp(case.created_at),
                "additionalData": {"Analytic Rule Name": "Known addresses"},
            },
        }

    def render_entity(self, entity: Entity) -> dict[str, Any]:
        kind, member = _ENTITIES[entity.kind]
        name = str(uuid5(NAMESPACE_URL, entity.value))
        return {
            "id": f"{INCIDENTS}/Entities/{name}",
            "name": name,
            "type": "Microsoft.SecurityInsights/Entities",
            "kind": kind,
            "properties": {"friendlyName": entity.value, member: entity.value},
        }


def severity_of(case: Case) -> str:
    """Return the word for a severity, of which there is none above High."""
    return "High" if case.severity is Severity.CRITICAL else str(case.severity)


def seen(message: str) -> str:
    """Return what a person sees of a comment: nothing in it is markup but line breaks."""
    return unescape(message.replace("<br>", ""))


def _etag(case: Case) -> str:
    return f'"{case.changed_at:%Y%m%d-%H%M%S-%f}"'


if __name__ == "__main__":
    run_simulator(SentinelSimulator)
