"""Simulator of the CrowdSec Local API: the part that the provider uses, with its quirks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from aiohttp import web

from tocsin import Entity, EntityKind, IncidentStatus, Severity, Window
from tocsin.testing import Case, ErrorResponse, LogEvent, Simulator

BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)
FILTERS = {"limit", "created_before", "since", "until", "sort", "value", "ip", "include_capi"}
STEP = 100
_TICK = timedelta(microseconds=1)
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")
META = {
    EntityKind.IP: "source_ip",
    EntityKind.USER: "target_user",
    EntityKind.HOST: "machine",
    EntityKind.DOMAIN: "target_fqdn",
}


def go_time(moment: datetime) -> str:
    """Return a time as Go writes it."""
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f").rstrip("0").rstrip(".") + " +0000 UTC"


def parse_duration(text: str) -> timedelta:
    """Return the length of what Go reads as a duration."""
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        raise ErrorResponse(500, f"while parsing duration: time: invalid duration {text!r}")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return timedelta(hours=hours, minutes=minutes, seconds=seconds)


def number_of(case: Case) -> int:
    """Return the id of a case's alert: the case's own, where that is a number."""
    return int(case.id) if case.id.isdecimal() else case.number


class LocalApiSimulator(Simulator):
    """An alert for each version of a case, created when that changed: alerts do not change."""

    machine: ClassVar = {"machine_id": "tocsin", "password": "a secret"}
    open_paths = ("/v1/watchers/login",)
    newest_first = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.spins = 0
        """How often it was asked for something that would have kept CrowdSec busy for ever."""

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/watchers/login", self.sign_in),
            web.get("/v1/alerts", self.list_alerts),
            web.get("/v1/alerts/{number}", self.get_alert),
        ]

    def is_signed(self, request: web.Request) -> bool:
        return self._is_known(request) and super().is_signed(request)

    @staticmethod
    def _is_known(request: web.Request) -> bool:
        return request.headers.get("User-Agent", "").count("/") == 1

    async def sign_in(self, request: web.Request) -> web.Response:
        if await request.json() != self.machine or not self._is_known(request):
            raise ErrorResponse(401, "incorrect Username or Password")
        ends = self.siem.now() + self.session_lifetime
        expire = ends.strftime("%Y-%m-%dT%H:%M:%SZ")
        return self.json({"code": 200, "expire": expire, "token": self.begin_session()})

    async def list_alerts(self, request: web.Request) -> web.Response:
        if unknown := request.query.keys() - FILTERS:
            raise ErrorResponse(
                500, f"Filter parameter {min(unknown)!r} is unknown: invalid filter"
            )
        if named := request.query.get("value") or request.query.get("ip"):
            return self._search(named, request.query)
        age = parse_duration(request.query.get("created_before", "0s"))
        window = Window(BEGINNING, self.siem.now() - age + _TICK)
        cases = await self._newest(window, int(request.query.get("limit", STEP)))
        return self.json([self.show(case) for case in cases] or None)

    def _search(self, named: str, query: Mapping[str, str]) -> web.Response:
        """Answer the alerts of a source, and how they are made of what occurred."""
        since, until = (self.siem.now() - parse_duration(query[key]) for key in ("since", "until"))
        kind = EntityKind.IP if named.count(".") == 3 else EntityKind.USER
        window, entity = Window(since, until + _TICK), Entity(kind, named)
        limit, found = int(query["limit"]), list[LogEvent]()
        while chunk := self.logged(window, entity, limit=limit - len(found), offset=len(found)):
            found += chunk
        return self.json([self.show_log_event(log_event) for log_event in found] or None)

    def render_log_event(self, log_event: LogEvent) -> dict[str, Any]:
        case = Case(
            id=log_event.id,
            number=int(log_event.id),
            title="test/log_event",
            severity=Severity.LOW,
            created_at=log_event.occurred_at,
            changed_at=log_event.occurred_at,
            entities=log_event.entities,
        )
        alert = self.render(case)
        alert["events"][0]["meta"].append({"key": "http_path", "value": log_event.text})
        return {**alert, "decisions": None}

    async def _newest(self, window: Window, limit: int) -> Sequence[Case]:
        """Return the newest cases, found in steps; the loop of CrowdSec 1.4.6 ends no better."""
        found: list[Case] = []
        while chunk := self.slice(window, limit=(limit or 10**9) - len(found), offset=len(found)):
            found += chunk
        if limit < 0 or (len(found) >= STEP and limit - len(found) >= STEP):
            self.spins += 1
            await asyncio.Event().wait()
        return found

    async def get_alert(self, request: web.Request) -> web.Response:
        number = request.match_info["number"]
        if not number.isdecimal():
            raise ErrorResponse(400, "alert_id must be valid integer")
        for case in self.siem.changed(Window(BEGINNING, self.siem.now() + timedelta(days=1))):
            if number_of(case) == int(number):
                return self.json(self.show(case))
        raise ErrorResponse(404, "object not found")

    def render(self, case: Case) -> dict[str, Any]:
        created = case.changed_at.strftime("%Y-%m-%dT%H:%M:%SZ")
        addresses = [entity.value for entity in case.entities if entity.kind is EntityKind.IP]
        meta = [{"key": META[entity.kind], "value": entity.value} for entity in case.entities]
        event = {"meta": meta, "timestamp": go_time(case.created_at)}
        return {
            "capacity": 5,
            "created_at": created,
            "decisions": [self._decision(case)],
            "events": [event] if meta else None,
            "events_count": 6,
            "id": number_of(case),
            "labels": None,
            "leakspeed": "10s",
            "machine_id": "sensor-1",
            "message": case.description,
            "scenario": case.title,
            "scenario_hash": "",
            "scenario_version": "0.1",
            "simulated": False,
            "source": {"scope": "Ip", "value": addresses[0], "ip": addresses[0]}
            if addresses
            else {"scope": "Username", "value": ""},
            "start_at": go_time(case.created_at),
            "stop_at": go_time(case.changed_at),
        }

    def _decision(self, case: Case) -> dict[str, Any]:
        """Return a ban of a month, lifted in a case that is closed."""
        left = case.changed_at + timedelta(days=30) - self.siem.now()
        lifted = case.status is IncidentStatus.CLOSED
        return {
            "duration": "-12m3.391815714s" if lifted else f"{left.total_seconds():.9f}s",
            "id": number_of(case),
            "origin": "crowdsec",
            "scenario": case.title,
            "scope": "Ip",
            "simulated": False,
            "type": "ban",
            "value": "203.0.113.7",
        }
