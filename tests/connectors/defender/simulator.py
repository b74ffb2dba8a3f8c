"""Simulator of a Defender XDR tenant behind Graph: the API that the provider uses, with quirks."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar

from aiohttp import web
from tests.connectors.microsoft.cloud import CREDENTIALS, TENANT, MicrosoftSimulator, stamp

from tocsin import Entity, EntityKind, IncidentStatus, Severity, Window
from tocsin.testing import Case, ErrorResponse, run_simulator
from tocsin_connectors.microsoft.clouds import MICROSOFT_CLOUDS

SETTINGS = CREDENTIALS
INCIDENTS, ALERTS = "/v1.0/security/incidents", "/v1.0/security/alerts_v2"
MOST_SKIPPED = 500
_END = datetime(2200, 1, 1, tzinfo=UTC)
_FILTER = re.compile(r"lastUpdateDateTime ge (\S+) and lastUpdateDateTime lt (\S+)")
DETECTOR = "e0da400f-affd-43ef-b1d5-afc2eb6f2756"
_STATUSES = {"New": "active", "Active": "inProgress", "Closed": "resolved"}
_STANDS = {word: IncidentStatus(status) for status, word in _STATUSES.items()}
_LATER = frozenset({"awaitingAction"})
"""What is shown only to who asks for words that came later."""


def bound(text: str, digits: int) -> datetime:
    """Return a bound of a filter, as exactly as the service looks at it."""
    seconds, _, fraction = text.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{seconds}.{fraction[:digits]:0<6.6}+00:00")


class DefenderSimulator(MicrosoftSimulator):
    """An alert for each incident, with all that the incident is about as its evidence."""

    time_column = "Timestamp"
    audiences: ClassVar = {"/": MICROSOFT_CLOUDS["public"].graph}

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.digits = 7
        """How many digits of a second a filter looks at."""
        self.heavy: set[str] = set()
        """The ids of incidents whose alerts are too many for a list."""
        self.unordered = False
        self.awaiting: set[str] = set()
        """The ids of incidents that Defender Experts wait for."""
        self.written: list[Any] = []

    def routes(self) -> list[web.RouteDef]:
        return [
            *self.entra_routes(),
            web.get(INCIDENTS, self.list_incidents),
            web.get(INCIDENTS + "/{id}", self.get_incident),
            web.patch(INCIDENTS + "/{id}", self.patch_incident),
            web.post(INCIDENTS + "/{id}/comments", self.add_comment),
            web.post("/v1.0/security/runHuntingQuery", self.hunt),
        ]

    async def list_incidents(self, request: web.Request) -> web.Response:
        return self.answer_list(request, INCIDENTS)

    def answer_list(self, request: web.Request, path: str) -> web.Response:
        query = request.query
        skip, top = int(query.get("$skip", 0)), min(int(query["$top"]), 1000)
        if skip > MOST_SKIPPED:
            raise ErrorResponse(400, f"$skip is at most {MOST_SKIPPED}")
        match = _FILTER.fullmatch(query["$filter"])
        if match is None or query["$orderby"] != "lastUpdateDateTime asc":
            raise ErrorResponse(400, "BadRequest: invalid filter or order")
        window = Window(*(bound(group, self.digits) for group in match.groups()))
        cases = self.slice(window, limit=top, offset=skip)
        expands = query.get("$expand") == "alerts"
        if expands and self.heavy & {case.id for case in cases}:
            raise ErrorResponse(500, "InternalServerError")
        records = [self.shown(request, case, expands=expands) for case in cases]
        answer: dict[str, Any] = {"value": records[:: -1 if self.unordered else 1]}
        reached = skip + len(cases)
        if len(cases) < top and reached < len(self.siem.changed(window)):
            # What the service itself has cut leads on; what `$top` has cut need not
            answer["@odata.nextLink"] = f"{self.url}{path}?$skip={reached}"
        return self.json(answer)

    def shown(self, request: web.Request, case: Case, *, expands: bool) -> dict[str, Any]:
        record = self.show(case)
        if case.id in self.awaiting:
            record["status"] = "awaitingAction"
        knows = "include-unknown-enum-members" in request.headers.get("Prefer", "")
        if not knows and record.get("status") in _LATER:
            record["status"] = "unknownFutureValue"
        return record if expands else {key: item for key, item in record.items() if key != "alerts"}

    async def get_incident(self, request: web.Request) -> web.Response:
        case = self.get(request.match_info["id"])
        return self.json(
            self.shown(request, case, expands=request.query.get("$expand") == "alerts")
        )

    async def patch_incident(self, request: web.Request) -> web.Response:
        case, body = self.get(request.match_info["id"]), await request.json()
        self.written.append(body)
        now = self.siem.clock.now()
        case = self.siem.put(
            replace(case, status=_STANDS.get(body["status"], IncidentStatus.NEW), changed_at=now)
        )
        return self.json(self.show(case))

    async def add_comment(self, request: web.Request) -> web.Response:
        case, body = self.get(request.match_info["id"]), await request.json()
        if body["@odata.type"] != "microsoft.graph.security.alertComment":
            raise ErrorResponse(400, "BadRequest: the type of the comment")
        self.siem.comment(case.id, body["comment"])
        return self.json({"value": self.comments(case)})

    async def hunt(self, request: web.Request) -> web.Response:
        if request.charset != "utf-8":
            raise ErrorResponse(400, "BadRequest: the charset")
        body = await request.json()
        for table in sorted(self.absent_tables):
            if f"({table} |" in body["Query"]:
                words = "'where' operator: Failed to resolve table or column expression named"
                raise ErrorResponse(400, f"{words} '{table}'")
        return self.json({"schema": [], "results": self.found_by(body["Query"])})

    def comments(self, case: Case) -> list[dict[str, Any]]:
        return [{"comment": text} for text in self.siem.comments(case.id)]

    def render(self, case: Case) -> dict[str, Any]:
        link = f"https://security.microsoft.com/incidents/{case.number}?tid={TENANT}"
        return {
            "@odata.type": "#microsoft.graph.security.incident",
            "id": case.id,
            "tenantId": TENANT,
            "status": "redirected" if case.merged_into else _STATUSES[case.status],
            "incidentWebUrl": link,
            "redirectIncidentId": case.merged_into,
            "displayName": case.title,
            "description": case.description,
            "createdDateTime": stamp(case.created_at),
            "lastUpdateDateTime": stamp(case.changed_at),
            "assignedTo": None,
            "classification": "unknown",
            "determination": "unknown",
            "severity": severity_of(case),
            "customTags": [],
            "comments": self.comments(case),
            "alerts": [self.render_alert(case)],
        }

    def render_alert(self, case: Case) -> dict[str, Any]:
        return {
            "@odata.type": "#microsoft.graph.security.alert",
            "id": f"al{case.number}",
            "incidentId": case.id,
            "status": "new",
            "severity": "medium",
            "title": "Something was seen",
            "detectorId": DETECTOR,
            "mitreTechniques": ["T1110.003"],
            "createdDateTime": stamp(case.created_at),
            "firstActivityDateTime": stamp(case.created_at),
            "evidence": [evidence_of(entity) for entity in case.entities],
        }


class DefenderAlertSimulator(DefenderSimulator):
    """Alerts, none of which is in an incident."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.incidents: dict[str, str] = {}
        """The incidents that alerts were put into."""

    def routes(self) -> list[web.RouteDef]:
        return [
            *(route for route in super().routes() if "/incidents" not in route.path),
            web.get(INCIDENTS, self.list_nothing),
            web.get(ALERTS, self.list_alerts),
            web.get(ALERTS + "/{id}", self.get_incident),
            web.patch(ALERTS + "/{id}", self.patch_incident),
            web.post(ALERTS + "/{id}/comments", self.add_comment),
        ]

    async def list_nothing(self, request: web.Request) -> web.Response:
        return self.json({"value": []})

    async def list_alerts(self, request: web.Request) -> web.Response:
        if "$expand" in request.query:
            raise ErrorResponse(400, "BadRequest: alerts have nothing to expand")
        return self.answer_list(request, ALERTS)

    def render(self, case: Case) -> dict[str, Any]:
        return {
            **self.render_alert(case),
            "id": case.id,
            "providerAlertId": case.id,
            "incidentId": self.incidents.get(case.id),
            "status": "new" if case.status == "New" else _STATUSES[case.status],
            "severity": severity_of(case),
            "serviceSource": "microsoftDefenderForEndpoint",
            "title": case.title,
            "description": case.description,
            "category": "CredentialAccess",
            "alertWebUrl": f"https://security.microsoft.com/alerts/{case.number}?tid={TENANT}",
            "classification": "unknown",
            "determination": "unknown",
            "lastUpdateDateTime": stamp(case.changed_at),
            "comments": self.comments(case),
        }


def evidence_of(entity: Entity) -> dict[str, Any]:
    """Return the evidence that names an entity."""
    kinds: dict[EntityKind, tuple[str, dict[str, Any]]] = {
        EntityKind.IP: ("ip", {"ipAddress": entity.value}),
        EntityKind.HOST: ("device", {"deviceDnsName": entity.value, "loggedOnUsers": []}),
        EntityKind.USER: ("user", {"userAccount": {"accountName": entity.value}}),
        EntityKind.DOMAIN: ("dns", {"domainName": entity.value}),
    }
    kind, members = kinds[entity.kind]
    return {"@odata.type": f"#microsoft.graph.security.{kind}Evidence", "roles": [], **members}


def severity_of(case: Case) -> str:
    """Return the word for a severity, of which there is none above high."""
    severity = Severity.HIGH if case.severity is Severity.CRITICAL else case.severity
    return str(severity).lower() if isinstance(severity, Severity) else str(severity)


if __name__ == "__main__":
    run_simulator(DefenderSimulator)
