"""Simulator of a Google SecOps instance: the part that the provider uses, with its quirks."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import jwt
import orjson
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.connectors.secops.udm_reader import BadQuery, terms

from tocsin import Entity, EntityKind, IncidentStatus, Severity, Window
from tocsin.testing import Case, ErrorResponse, Fault, LogEvent, Simulator, run_simulator

PROJECT, REGION, INSTANCE = "soc-1", "eu", "0a1b2c3d-0000-4000-8000-00000000c0de"
BASE = f"/v1alpha/projects/{PROJECT}/locations/{REGION}/instances/{INSTANCE}"
EMAIL = "tocsin@soc-1.iam.gserviceaccount.com"
CURATED = "ur_ttp_GCP_MassSecretDeletion"
_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
_PEM = _KEY.private_bytes(
    serialization.Encoding.PEM,
    serialization.PrivateFormat.PKCS8,
    serialization.NoEncryption(),
).decode()
ACCOUNT = orjson.dumps(
    {
        "type": "service_account",
        "client_email": EMAIL,
        "private_key_id": "k1",
        "private_key": _PEM,
        "token_uri": "https://oauth2.googleapis.com/token",
    }
).decode()
_STATUSES = {"New": "NEW", "Active": "REVIEWED", "Closed": "CLOSED"}
_STANDS = {word: IncidentStatus(status) for status, word in _STATUSES.items()}
_BEHIND = timedelta(hours=5)
"""How far the times of detections lie behind those at which they were made."""
PLACES = {
    EntityKind.IP: "principal.ip",
    EntityKind.HOST: "principal.hostname",
    EntityKind.USER: "principal.user.userid",
    EntityKind.DOMAIN: "network.dns.questions.name",
}


def stamp(moment: datetime) -> str:
    """Return a time as Google writes it."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


class SecOpsSimulator(Simulator):
    """Detections of rules, which are listed by when they were created."""

    open_paths = ("/token",)
    most_per_page: ClassVar[int] = 1000

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.lists_per_minute: int | None = None
        """How many lists are answered; the service's own limit is 10."""
        self.lacks: set[str] = set()
        """Permissions that the service account does not have."""
        self.curated: dict[str, list[Case]] = {}
        """The detections of each curated rule."""
        self.truncates = False
        self.more_events = False
        self.updates: list[Any] = []
        self._lists: list[datetime] = []

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/token", self.sign_in),
            web.get(BASE + "/legacy:legacySearchDetections", self.search_detections),
            web.get(BASE + "/legacy:legacySearchCuratedDetections", self.search_curated),
            web.get(BASE + "/curatedRules/{rule}", self.get_curated_rule),
            web.post(BASE + ":countAllCuratedRuleSetDetections", self.count_curated),
            web.get(BASE + "/legacy:legacyGetAlert", self.get_alert),
            web.post(BASE + "/legacy:legacyUpdateAlert", self.update_alert),
            web.get(BASE + ":udmSearch", self.udm_search),
        ]

    async def sign_in(self, request: web.Request) -> web.Response:
        form = dict(await request.post())
        if form["grant_type"] != "urn:ietf:params:oauth:grant-type:jwt-bearer":
            raise ErrorResponse(400, "unsupported_grant_type")
        try:
            claims = jwt.decode(
                str(form["assertion"]),
                _KEY.public_key(),
                algorithms=["RS256"],
                audience=f"{self.url}/token",
                options={"verify_exp": False, "verify_iat": False},
            )
        except jwt.PyJWTError as error:
            raise ErrorResponse(400, f"invalid_grant: {error}") from error
        if claims["iss"] != EMAIL or claims["exp"] - claims["iat"] > 3600:
            raise ErrorResponse(400, "invalid_grant: Invalid JWT")
        seconds = int(self.session_lifetime.total_seconds())
        token = self.begin_session()
        return self.json({"access_token": token, "token_type": "Bearer", "expires_in": seconds})

    def need(self, permission: str) -> None:
        if permission in self.lacks:
            raise ErrorResponse(403, f"PERMISSION_DENIED: {permission}")

    async def search_detections(self, request: web.Request) -> web.Response:
        self.need("chronicle.legacies.legacySearchDetections")
        query = request.query
        if query["ruleId"] != "-":
            raise ErrorResponse(404, "NOT_FOUND: no such rule")
        by_creation = query.get("listBasis") == "CREATED_TIME"
        window = Window(*(datetime.fromisoformat(query[name]) for name in ("startTime", "endTime")))
        if not by_creation:  # then the time of the detection counts
            window = Window(window.start + _BEHIND, window.end + _BEHIND)
        return self.listed(request, self.siem.created(window), "detections")

    async def search_curated(self, request: web.Request) -> web.Response:
        self.need("chronicle.legacies.legacySearchCuratedDetections")
        query = request.query
        window = Window(*(datetime.fromisoformat(query[name]) for name in ("startTime", "endTime")))
        # There is no wildcard: it is no rule, and has no detections
        cases = [
            case for case in self.curated.get(query["ruleId"], []) if case.created_at in window
        ]
        return self.listed(request, cases, "curatedDetections")

    async def count_curated(self, request: web.Request) -> web.Response:
        """Answer with the rules that have detections, by the time of the detections."""
        self.need("counting curated detections")
        interval = (await request.json())["interval"]
        start, end = (datetime.fromisoformat(interval[name]) for name in ("startTime", "endTime"))
        window = Window(start, end)
        counts = {
            rule: sum(case.created_at - _BEHIND in window for case in cases)
            for rule, cases in self.curated.items()
        }
        counted = [
            {
                "curatedRule": f"{BASE}/curatedRules/{rule}",
                "precision": "BROAD",
                "count": str(count),
            }
            for rule, count in counts.items()
            if count
        ]
        return self.json({"curatedRuleCounts": counted} if counted else {})

    async def get_curated_rule(self, request: web.Request) -> web.Response:
        self.need("chronicle.curatedRules.get")
        if (rule := request.match_info["rule"]) not in {CURATED, *self.curated}:
            raise ErrorResponse(404, "NOT_FOUND")
        return self.json({"name": f"curatedRules/{rule}", "displayName": "A rule of Google's"})

    def listed(self, request: web.Request, cases: Sequence[Case], member: str) -> web.Response:
        """Answer a page; what is empty is left out of it."""
        self.count()
        query = request.query
        token, limit = query.get("pageToken"), int(query["pageSize"])
        start = 0 if token is None else self.behind(cases, token)
        end = start + min(limit, self.most_per_page)
        page = cases[start:end]
        if any(case.id in self.siem.poisoned for case in page):
            raise ErrorResponse(500, "INTERNAL")
        following = self._token(_key(cases[end - 1])) if end < len(cases) else None
        if self._takes(Fault.PARTIAL):
            page = page[: len(page) // 2]
        elif token is not None and self._takes(Fault.REPEATED_PAGE):
            following = token
        told: dict[str, Any] = {member: [self.show(case) for case in page]} if page else {}
        if following:
            told["nextPageToken"] = following
        if self.truncates and len(page) > 1:
            told["respTooLargeDetectionsTruncated"] = True
        return self.json(told)

    def behind(self, cases: Sequence[Case], token: str) -> int:
        """Return the index of the first case behind the one that a token remembers."""
        self._place([], token)  # whether it has expired
        return bisect_right(cases, self._places[token].key, key=_key)

    def count(self) -> None:
        """Refuse a list where there were too many within a minute."""
        now = self.siem.clock.now()
        self._lists = [list_ for list_ in self._lists if list_ > now - timedelta(minutes=1)]
        if self.lists_per_minute is not None and len(self._lists) >= self.lists_per_minute:
            raise ErrorResponse(429, "RESOURCE_EXHAUSTED")
        self._lists.append(now)

    async def get_alert(self, request: web.Request) -> web.Response:
        self.need("chronicle.legacies.legacyGetAlert")
        return self.json({"alert": self.show(self.get(request.query["alertId"]))})

    async def update_alert(self, request: web.Request) -> web.Response:
        self.need("chronicle.legacies.legacyUpdateAlert")
        body = await request.json()
        case, feedback = self.get(body["alertId"]), body["feedback"]
        self.updates.append(body)
        if comment := feedback.get("comment"):
            self.siem.comment(case.id, comment)
        if status := feedback.get("status"):
            now = self.siem.clock.now()
            self.siem.put(replace(case, status=_STANDS[status], changed_at=now))
        return self.json({"alert": self.show(self.get(case.id))})

    async def udm_search(self, request: web.Request) -> web.Response:
        self.need("chronicle.events.udmSearch")
        query = request.query
        names = ("timeRange.startTime", "timeRange.endTime")
        window = Window(*(datetime.fromisoformat(query[name]) for name in names))
        try:
            asked = terms(query["query"])
        except BadQuery as error:
            raise ErrorResponse(400, f"INVALID_ARGUMENT: {error}") from error
        wanted = {
            Entity(kind, term.value)
            for term in asked
            for kind, place in PLACES.items()
            if place == term.field
        }
        limit = int(query["limit"])
        found = [value for entity in wanted for value in self.found(window, entity, limit)]
        told: dict[str, Any] = {"moreDataAvailable": self.more_events}
        if found:
            told["events"] = [self.show_log_event(item) for item in found]
        return self.json(told)

    def found(self, window: Window, entity: Entity, limit: int) -> list[LogEvent]:
        found: list[LogEvent] = []
        while chunk := self.logged(window, entity, limit=limit - len(found), offset=len(found)):
            found += chunk
        return found

    # shapes

    def render(self, case: Case) -> dict[str, Any]:
        comments = [{"comment": comment} for comment in self.siem.comments(case.id)]
        rule = {
            "ruleName": case.title,
            "description": case.description,
            "severity": severity_of(case),
            "ruleId": "ru_1",
            "ruleType": "MULTI_EVENT",
            "alertState": "ALERTING",
            "ruleLabels": [{"key": "mitre_technique_id", "value": "T1110.003"}],
            "urlBackToProduct": f"https://soc.backstory.chronicle.security/alerts/{case.number}",
        }
        return {
            "type": "RULE_DETECTION",
            "id": case.id,
            "createdTime": stamp(case.created_at),
            "lastUpdatedTime": stamp(case.changed_at),
            "detectionTime": stamp(case.created_at - _BEHIND),
            "timeWindow": {"startTime": stamp(case.created_at), "endTime": stamp(case.created_at)},
            "detection": [rule],
            "feedbackSummary": {"status": _STATUSES[case.status], **(comments or [{}])[-1]},
            "feedbackHistory": comments,
            "collectionElements": [
                {
                    "label": "event",
                    "references": [{"event": udm(entity)} for entity in case.entities],
                }
            ],
        }

    def render_log_event(self, log_event: LogEvent) -> dict[str, Any]:
        event: dict[str, Any] = {"principal": {}, "network": {}}
        for entity in log_event.entities:
            for noun, members in udm(entity).items():
                event[noun] |= members
        metadata = {
            "id": log_event.id,
            "eventTimestamp": stamp(log_event.occurred_at),
            "eventType": "NETWORK_CONNECTION",
            "productName": "A firewall",
            "description": log_event.text,
        }
        return {"name": f"events/{log_event.id}", "udm": {"metadata": metadata, **event}}


def udm(entity: Entity) -> dict[str, Any]:
    """Return what of an event names an entity."""
    shapes: dict[EntityKind, dict[str, Any]] = {
        EntityKind.IP: {"principal": {"ip": [entity.value]}},
        EntityKind.HOST: {"principal": {"hostname": entity.value}},
        EntityKind.USER: {"principal": {"user": {"userid": entity.value}}},
        EntityKind.DOMAIN: {"network": {"dns": {"questions": [{"name": entity.value}]}}},
    }
    return shapes[entity.kind]


def severity_of(case: Case) -> str:
    """Return the word for how bad it is."""
    known = isinstance(case.severity, Severity)
    return case.severity.value.upper() if known else str(case.severity)


def _key(case: Case) -> tuple[datetime, str]:
    return case.created_at, case.id


SETTINGS = {
    "project": PROJECT,
    "region": REGION,
    "instance": INSTANCE,
    "service_account": ACCOUNT,
}

if __name__ == "__main__":
    run_simulator(SecOpsSimulator)
