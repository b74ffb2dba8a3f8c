"""Simulator of an InsightIDR organization: the part that the provider uses, with its quirks."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web

from tocsin import Entity, EntityKind, IncidentStatus, Severity, Window
from tocsin.testing import Case, ErrorResponse, Fault, Simulator, run_simulator

API_KEY = "11111111-2222-4333-8444-555555555555"
SETTINGS = {"api_key": API_KEY}
TOKEN = "0123456789ABCDEF0123"
_TICK = timedelta(milliseconds=1)
_MICROSECOND = timedelta(microseconds=1)
_ALERT = "rrn:alerts:us1:0a1b2c3d:alert:1:"
_STATUSES = {"New": "OPEN", "Active": "INVESTIGATING", "Closed": "CLOSED"}
_STANDS = {word: IncidentStatus(status) for status, word in _STATUSES.items()}
_VERSIONS = {
    "/idr/v2/investigations": "investigations-preview",
    "/idr/at/alerts": "strong-force-preview",
    "/idr/v1/comments": "comments-preview",
}
KEYS = {
    EntityKind.IP: "source_ip",
    EntityKind.HOST: "asset",
    EntityKind.USER: "account",
    EntityKind.DOMAIN: "query",
}


def trim(moment: datetime) -> datetime:
    """Return a time to the millisecond."""
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def stamp(moment: datetime) -> str:
    """Return a time as InsightIDR writes it."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


class InsightIDRSimulator(Simulator):
    """Investigations with an alert each, which are found by when they were created."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.forbidden: set[str] = set()
        """Beginnings of paths that the API key may not request, with the method."""
        self.asked: list[dict[str, Any]] = []
        """Bodies of searches for investigations."""
        self.has_alert_api = True
        """Whether details of alerts can be read."""

    def routes(self) -> list[web.RouteDef]:
        investigations, alerts = "/idr/v2/investigations", "/idr/at/alerts"
        return [
            web.post(f"{investigations}/_search", self.search),
            web.get(investigations + "/{rrn}", self.get_investigation),
            web.get(investigations + "/{rrn}/alerts", self.list_alerts),
            web.put(investigations + "/{rrn}/status/{status}", self.set_status),
            web.post(f"{alerts}/ops/search", self.search_alerts),
            web.get(alerts + "/{rrn}", self.get_alert),
            web.get(alerts + "/{rrn}/evidences", self.list_evidence),
            web.get("/idr/v1/comments", self.list_comments),
            web.post("/idr/v1/comments", self.add_comment),
        ]

    def is_signed(self, request: web.Request) -> bool:
        return request.headers.get("X-Api-Key") == API_KEY

    def admit(self, request: web.Request) -> None:
        path = request.path
        version = next(word for base, word in _VERSIONS.items() if path.startswith(base))
        if request.headers.get("Accept-version") != version:
            raise ErrorResponse(404, "this API is a preview")
        if any(f"{request.method} {path}".startswith(start) for start in self.forbidden):
            raise ErrorResponse(403, "Forbidden")

    async def search(self, request: web.Request) -> web.Response:
        self.admit(request)
        body = await request.json()
        self.asked.append(body)
        if body["sort"] != [{"field": "created_time", "order": "ASC"}]:
            raise ErrorResponse(400, "this simulator sorts by created_time alone")
        start, end = (datetime.fromisoformat(body[name]) for name in ("start_time", "end_time"))
        # Both ends are exclusive
        window = Window(start, max(start + _MICROSECOND, end))
        cases = [case for case in self.siem.created(window) if start < trim(case.created_at) < end]
        index, asked = (int(request.query[name]) for name in ("index", "size"))
        if not 1 <= asked <= 100:
            raise ErrorResponse(400, "size must be from 1 to 100")
        size = min(asked, self.most_per_page)
        page = cases[index * size : (index + 1) * size]
        if any(case.id in self.siem.poisoned for case in page):
            raise ErrorResponse(500, "Internal error")
        pages = -(-len(cases) // size)
        if self._takes(Fault.PARTIAL):
            page = page[: len(page) // 2]
        return self.paged([self.show(case) for case in page], index, len(cases), pages)

    def paged(self, records: list[Any], index: int, total: int, pages: int) -> web.Response:
        metadata = {
            "index": index,
            "size": len(records),
            "total_data": total,
            "total_pages": pages,
        }
        return self.json({"data": records, "metadata": metadata})

    async def get_investigation(self, request: web.Request) -> web.Response:
        self.admit(request)
        return self.json(self.show(self.get(request.match_info["rrn"])))

    async def list_alerts(self, request: web.Request) -> web.Response:
        self.admit(request)
        case = self.get(request.match_info["rrn"])
        alert = {
            "id": f"{_ALERT}{case.id}",
            "title": "Brute force",
            "alert_type": "Attacker Behavior Detected",
            "alert_type_description": None,
            "alert_source": "Attacker Behavior Analytics",
            "created_time": stamp(case.created_at),
            "first_event_time": stamp(case.created_at),
            "latest_event_time": None,
            "detection_rule_rrn": {
                "rule_name": "Brute force",
                "rule_rrn": "rrn:cba:::detection-rule:R1",
            },
        }
        return self.paged([alert], 0, 1, 1)

    async def search_alerts(self, request: web.Request) -> web.Response:
        self.admit(request)
        return self.json({"rrns": [], "metadata": {"total_items": 0, "is_last_index": True}})

    def find_alert(self, request: web.Request) -> Case:
        self.admit(request)
        if not self.has_alert_api:
            raise ErrorResponse(404, "no such alert")
        return self.get(request.match_info["rrn"].removeprefix(_ALERT))

    async def get_alert(self, request: web.Request) -> web.Response:
        case = self.find_alert(request)
        return self.json(
            {
                "rrn": f"{_ALERT}{case.id}",
                "organization": {"id": "0a1b2c3d", "product_token": TOKEN},
                "rule": {"mitre_tcodes": ["Credential Access", "T1110"]},
                "rule_keys_of_interest": [{"key": "result", "values": ["FAILED_BAD_PASSWORD"]}],
                "priority": "LOW",
                "status": "OPEN",
            }
        )

    async def list_evidence(self, request: web.Request) -> web.Response:
        case = self.find_alert(request)
        pieces = [
            {"event_type": "ingress_auth", "data": self.write_data(case, entity)}
            for entity in case.entities
        ]
        return self.json({"evidences": pieces, "metadata": {"total_items": len(pieces)}})

    def write_data(self, case: Case, entity: Entity) -> Any:
        data = {"timestamp": stamp(case.created_at), KEYS[entity.kind]: entity.value}
        return data if case.number % 2 else json.dumps(data)

    async def set_status(self, request: web.Request) -> web.Response:
        self.admit(request)
        case, now = self.get(request.match_info["rrn"]), self.siem.clock.now()
        status = _STANDS[request.match_info["status"]]
        case = self.siem.put(replace(case, status=status, changed_at=now))
        return self.json(self.show(case))

    async def list_comments(self, request: web.Request) -> web.Response:
        self.admit(request)
        target = request.query["target"]
        index, size = int(request.query["index"]), int(request.query["size"])
        texts = self.siem.comments(target)
        page = [{"target": target, "body": text} for text in texts[index * size :][:size]]
        return self.paged(page, index, len(texts), -(-len(texts) // size))

    async def add_comment(self, request: web.Request) -> web.Response:
        self.admit(request)
        body = await request.json()
        self.siem.comment(self.get(body["target"]).id, body["body"])
        return self.json({**body, "visibility": "PUBLIC"})

    def render(self, case: Case) -> dict[str, Any]:
        is_known = isinstance(case.severity, Severity)
        changed_at = trim(case.changed_at)
        if case.changed_at > case.created_at:
            changed_at += _TICK
        return {
            "rrn": case.id,
            "title": case.title,
            "source": "ALERT",
            "priority": str(case.severity).upper() if is_known else case.severity,
            "status": _STATUSES[case.status],
            "disposition": "UNDECIDED",
            "created_time": stamp(case.created_at),
            "first_alert_time": None,
            "latest_alert_time": None,
            "last_accessed": stamp(changed_at),
            "assignee": None,
            "organization_id": "0a1b2c3d",
            "responsibility": "CUSTOMER",
            "tags": [case.description] if case.description else [],
        }


if __name__ == "__main__":
    run_simulator(InsightIDRSimulator)
