"""Simulator of a CrowdStrike cloud: the part that the provider uses, with its quirks."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, ClassVar

from aiohttp import web
from tests.connectors.crowdstrike.languages import (
    NOTHING,
    BadQuery,
    Query,
    clauses,
    query,
    updated_within,
)

from tocsin import Entity, EntityKind, IncidentStatus, Severity, Window
from tocsin.testing import Case, ErrorResponse, LogEvent, Simulator, run_simulator

CLIENT = {"client_id": "0a1b2c3d4e5f60718293a4b5c6d7e8f9", "client_secret": "a secret"}
CID = "00112233445566778899aabbccddeeff"
OFFSETS_END = 10_000
_STATUSES = {"New": "new", "Active": "in_progress", "Closed": "closed"}
_STANDS = {word: IncidentStatus(status) for status, word in _STATUSES.items()}
_NUMBERS = {"Informational": 10, "Low": 30, "Medium": 50, "High": 70, "Critical": 90}
PLACES = {
    EntityKind.IP: "RemoteAddressIP4",
    EntityKind.HOST: "ComputerName",
    EntityKind.USER: "UserName",
    EntityKind.DOMAIN: "DomainName",
}
_NANOSECONDS = "066"


def stamp(moment: datetime) -> str:
    """Return a time to the nanosecond, of which the index only has the milliseconds."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}{_NANOSECONDS}Z"


class FalconSimulator(Simulator):
    """Alerts of the product for endpoints."""

    open_paths = ("/oauth2/token",)
    session_lifetime = timedelta(minutes=30)
    page_token_lifetime = timedelta(seconds=120)
    most_per_page: ClassVar[int] = 1000

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.region = "us-1"
        self.redirects_to: str | None = None
        """The other cloud that a sign-in is sent to."""
        self.lacks: set[str] = set()
        """Scopes that the API client does not have."""
        self.member_cid: str | None = None
        self.changes: list[Any] = []
        self.members: dict[str, Any] = {}
        """Members that each alert has besides, or instead."""
        self.errors: list[Any] = []
        """What the list tells of, though its status is 200."""
        self.polls = 1
        """How often a search is asked for before it is done."""
        self.warnings: list[str] = []
        self.jobs: dict[str, tuple[int, list[dict[str, Any]]]] = {}
        self._job_numbers = count(1)

    def routes(self) -> list[web.RouteDef]:
        jobs = "/humio/api/v1/repositories/search-all/queryjobs"
        return [
            web.post("/oauth2/token", self.sign_in),
            web.post("/alerts/combined/alerts/v1", self.combined),
            web.get("/alerts/queries/alerts/v2", self.identifiers),
            web.post("/alerts/entities/alerts/v2", self.by_ids),
            web.patch("/alerts/entities/alerts/v3", self.patch),
            web.post(jobs, self.begin),
            web.get(jobs + "/{id}", self.poll),
            web.delete(jobs + "/{id}", self.clear),
        ]

    def envelope(self, resources: Any, **pagination: Any) -> web.Response:
        meta = {"query_time": 0.01, "trace_id": "t", "pagination": pagination}
        return self.json({"meta": meta, "errors": self.errors, "resources": resources})

    def expect_scope(self, scope: str) -> None:
        if scope in self.lacks:
            raise ErrorResponse(403, "access denied, authorization failed")

    async def sign_in(self, request: web.Request) -> web.Response:
        if self.redirects_to is not None:
            raise ErrorResponse(
                308, "Permanent Redirect", {"Location": f"{self.redirects_to}/oauth2/token"}
            )
        form = dict(await request.post())
        self.member_cid = form.pop("member_cid", None)
        if form != CLIENT:
            raise ErrorResponse(401, "access denied, invalid client")
        seconds = int(self.session_lifetime.total_seconds())
        body = {"access_token": self.begin_session(), "token_type": "bearer", "expires_in": seconds}
        answer = self.json(body, 201)
        answer.headers["X-Cs-Region"] = self.region
        return answer

    async def combined(self, request: web.Request) -> web.Response:
        self.expect_scope("Alerts: Read")
        body = await request.json()
        if body["sort"] != "updated_timestamp|asc" or not 0 < body["limit"] <= 1000:
            raise ErrorResponse(400, "invalid sort or limit")
        window = self.window(body["filter"])
        shown = self.page(window, limit=body["limit"], token=body.get("after"))
        paging = {"limit": body["limit"], "total": len(self.siem.changed(window))}
        if shown.next_token:
            paging["after"] = shown.next_token
        return self.envelope([self.show(case) for case in shown.cases], **paging)

    def window(self, words: str) -> Window:
        try:
            return updated_within(words)
        except (BadQuery, ValueError) as error:
            raise ErrorResponse(400, str(error)) from error

    async def identifiers(self, request: web.Request) -> web.Response:
        """Answer the older way of listing, in two steps and not beyond 10,000."""
        limit, offset = int(request.query.get("limit", 100)), int(request.query.get("offset", 0))
        if limit + offset > OFFSETS_END:
            raise ErrorResponse(400, f"limit plus offset is at most {OFFSETS_END}")
        clauses(request.query["filter"])
        window = self.window(request.query["filter"])
        cases = self.slice(window, limit=limit, offset=offset)
        total = len(self.siem.changed(window))
        return self.envelope(
            [incident.id for incident in cases], offset=offset, limit=limit, total=total
        )

    async def by_ids(self, request: web.Request) -> web.Response:
        self.expect_scope("Alerts: Read")
        wanted = (await request.json())["composite_ids"]
        if not wanted:
            raise ErrorResponse(400, "no ids")
        found = [case for item in wanted if (case := self.siem.get(item))]
        return self.envelope([self.show(case) for case in found])

    async def patch(self, request: web.Request) -> web.Response:
        self.expect_scope("Alerts: Write")
        body = await request.json()
        if not body["composite_ids"] or not body["action_parameters"]:
            raise ErrorResponse(400, "no ids, or no action parameters")
        self.changes.append(body)
        for identifier in body["composite_ids"]:
            for action in body["action_parameters"]:
                self.act(self.get(identifier), action["name"], action["value"])
        return self.json({"meta": {"writes": {"resources_affected": 1}}, "errors": []})

    def act(self, case: Case, name: str, value: str) -> None:
        match name:
            case "append_comment":
                self.siem.comment(case.id, value)
            case "update_status" if value in _STANDS:
                now = self.siem.clock.now()
                self.siem.put(replace(case, status=_STANDS[value], changed_at=now))
            case _:
                raise ErrorResponse(400, f"invalid action {name}")

    # Next-Gen SIEM

    async def begin(self, request: web.Request) -> web.Response:
        self.expect_scope("NGSIEM: Read and Write")
        body = await request.json()
        rows = self.rows(body["queryString"], body.get("arguments", {}))
        identifier = f"P1-{next(self._job_numbers)}"
        self.jobs[identifier] = (self.polls, rows)
        return self.json({"id": identifier, "hashedQueryOnView": "h"})

    def rows(self, words: str, arguments: dict[str, str]) -> list[dict[str, Any]]:
        if words == NOTHING:
            return []
        try:
            asked = query(words)
        except BadQuery as error:
            raise ErrorResponse(400, str(error)) from error
        value = arguments["value"]
        kinds = [kind for kind, field in PLACES.items() if field in asked.fields]
        found = [one for kind in kinds for one in self.found(asked, Entity(kind, value))]
        found.sort(key=lambda event: event.occurred_at)
        return [self.show_log_event(item) for item in found[-asked.limit :]]

    def found(self, asked: Query, entity: Entity) -> list[LogEvent]:
        found: list[LogEvent] = []
        while chunk := self.logged(
            asked.window, entity, limit=asked.limit - len(found), offset=len(found)
        ):
            found += chunk
        return found

    async def poll(self, request: web.Request) -> web.Response:
        identifier = request.match_info["id"]
        if identifier not in self.jobs:
            raise ErrorResponse(404, "no such query job")
        left, rows = self.jobs[identifier]
        self.jobs[identifier] = (left - 1, rows)
        done = left <= 1
        told = {"pollAfter": 1000, "warnings": self.warnings, "eventCount": len(rows)}
        body = {"cancelled": False, "done": done, "events": rows if done else [], "metaData": told}
        return self.json(body)

    async def clear(self, request: web.Request) -> web.Response:
        self.jobs.pop(request.match_info["id"], None)
        return self.json({})

    # shapes

    def render(self, case: Case) -> dict[str, Any]:
        of = {
            kind: [entity.value for entity in case.entities if entity.kind is kind]
            for kind in PLACES
        }
        hosts = of[EntityKind.HOST]
        return {
            "composite_id": case.id,
            "id": case.id.removeprefix(f"{CID}:"),
            "aggregate_id": f"aggind:{case.number}",
            "cid": CID,
            "created_timestamp": stamp(case.created_at),
            "updated_timestamp": stamp(case.changed_at),
            "timestamp": stamp(case.created_at),
            "display_name": case.title,
            "description": case.description,
            "product": "epp",
            "type": "ldt",
            "status": _STATUSES[case.status],
            "show_in_ui": True,
            "tactic_id": "TA0006",
            "technique_id": "T1110.003",
            "device": {"hostname": hosts[0] if hosts else "", "device_id": "d"},
            "host_names": hosts[1:],
            "source_ips": of[EntityKind.IP],
            "user_names": of[EntityKind.USER],
            "domain_names": of[EntityKind.DOMAIN],
            "comments": [{"value": comment} for comment in self.siem.comments(case.id)],
            "falcon_host_link": f"https://falcon.crowdstrike.com/unified-detections/{case.number}",
            **severity_of(case),
            **self.members,
        }

    def render_log_event(self, log_event: LogEvent) -> dict[str, Any]:
        named = {
            PLACES[entity.kind]: entity.value
            for entity in log_event.entities
            if entity.kind in PLACES
        }
        return {
            "@timestamp": int(log_event.occurred_at.timestamp() * 1000),
            "@id": log_event.id,
            "#event_simpleName": "NetworkConnectIP4",
            "ContextBaseFileName": "curl.exe",
            "message": log_event.text,
            **named,
        }


def severity_of(case: Case) -> dict[str, Any]:
    """Return how bad it is; a word that nobody knows has no number that anybody knows."""
    if isinstance(case.severity, Severity):
        word = case.severity.value
        return {"severity": _NUMBERS[word], "severity_name": word}
    return {"severity": 0, "severity_name": str(case.severity)}


SETTINGS = CLIENT

if __name__ == "__main__":
    run_simulator(FalconSimulator)
