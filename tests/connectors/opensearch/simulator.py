"""Simulator of Security Analytics: the part that the provider uses, with its quirks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from aiohttp import web
from tests.connectors.indices.query import stamp
from tests.connectors.indices.simulator import (
    EVER,
    MAX_RESULT_WINDOW,
    Document,
    IndexSimulator,
    short,
)

from tocsin import EntityKind, IncidentStatus, Severity, Window
from tocsin.testing import Case, ErrorResponse, Fault, LogEvent

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
DETECTOR = "8YT5fYQBZ8IUM4axics6"
SEVERITIES = dict(zip(reversed(Severity), "12345", strict=True))
STATES = {
    IncidentStatus.NEW: "ACTIVE",
    IncidentStatus.ACTIVE: "ACKNOWLEDGED",
    IncidentStatus.CLOSED: "COMPLETED",
}
FIELDS = {
    EntityKind.IP: "source.ip",
    EntityKind.USER: "user.name",
    EntityKind.HOST: "host.name",
    EntityKind.DOMAIN: "dns.question.name",
    EntityKind.FILE_HASH: "file.hash.sha256",
    EntityKind.FILE: "file.path",
    EntityKind.URL: "url.full",
    EntityKind.EMAIL: "user.email",
}
PERMISSION = "cluster:admin/opensearch/securityanalytics"
PARAMETERS = {
    *("detector_id", "detectorType", "severityLevel", "alertState", "sortString", "sortOrder"),
    *("missing", "size", "startIndex", "searchString", "startTime", "endTime"),
}


def name_of(case: Case, detector: str = DETECTOR) -> str:
    """Return the id of the incident of a case."""
    return f"{case.id}@{detector}@{stamp(case.created_at)}"


class AnalyticsSimulator(IndexSimulator):
    """An alert for each case, which lists only by when it began."""

    detectors: ClassVar[dict[str, str]] = {DETECTOR: "Windows logs"}

    def routes(self) -> list[web.RouteDef]:
        plugin = "/_plugins/_security_analytics"
        return [
            web.post(f"{plugin}/detectors/_search", self.search_detectors),
            web.get(f"{plugin}/alerts", self.list_alerts),
            web.get(f"{plugin}/findings/_search", self.search_findings),
            web.post(f"{plugin}/detectors/{{id}}/_acknowledge/alerts", self.acknowledge),
            *super().routes(),
        ]

    def documents(self, window: Window, indices: str = "") -> Iterator[Document]:
        for log_event in self.siem._log:
            if log_event.occurred_at in window:
                yield Document(
                    index="logs-windows",
                    id=log_event.id,
                    source=self.render_log_event(log_event),
                    shown=self.show_log_event(log_event),
                    at=log_event.occurred_at,
                )

    def render_log_event(self, log_event: LogEvent) -> dict[str, Any]:
        document = document_of(log_event.entities)
        return {"@timestamp": short(log_event.occurred_at), "message": log_event.text, **document}

    async def search_detectors(self, _request: web.Request) -> web.Response:
        self.need(f"{PERMISSION}/detector/search")
        inputs = [{"detector_input": {"indices": ["logs-windows"], "description": ""}}]
        hits = [
            {
                "_index": ".opensearch-sap-detectors-config",
                "_id": identifier,
                "_source": {"type": "detector", "name": name, "inputs": inputs},
            }
            for identifier, name in self.detectors.items()
        ]
        total = {"value": len(hits), "relation": "eq"}
        answer = {"took": 1, "timed_out": False, "_shards": self.shards}
        return self.json({**answer, "hits": {"total": total, "max_score": 1.0, "hits": hits}})

    async def list_alerts(self, request: web.Request) -> web.Response:
        self.need(f"{PERMISSION}/alerts/get")
        query = request.query
        if unknown := query.keys() - PARAMETERS:
            raise ErrorResponse(400, f"request contains unrecognized parameters: {sorted(unknown)}")
        if query["detector_id"] not in self.detectors:
            raise ErrorResponse(404, "Detector not found.")
        size, index = int(query.get("size", 20)), int(query.get("startIndex", 0))
        if index + size > MAX_RESULT_WINDOW:
            raise ErrorResponse(400, f"Result window is too large: {MAX_RESULT_WINDOW}")
        cases = self.begun(
            query["detector_id"],
            self._time(query, "startTime", EVER.start),
            self._time(query, "endTime", EVER.end),
        )
        page = cases[index : index + min(size, self.most_per_page)]
        if any(case.id in self.siem.poisoned for case in page):
            raise ErrorResponse(500, "an alert cannot be shown")
        if self._takes(Fault.PARTIAL):
            page = page[: len(page) // 2]
        alerts = [self.show(case) for case in page]
        return self.json({"alerts": alerts, "total_alerts": len(cases), "detectorType": "windows"})

    def begun(self, detector: str, start: datetime, end: datetime) -> list[Case]:
        """Return the cases of a detector that began from one millisecond to another."""
        window = Window(start, end)
        return self.siem.created(window) if detector == DETECTOR else []

    def _time(self, query: Any, name: str, otherwise: datetime) -> datetime:
        """Return a bound; for one that is no number, Security Analytics takes now."""
        try:
            moment = _EPOCH + int(query[name]) * _MILLISECOND
        except KeyError:
            return otherwise
        except ValueError:
            moment = self.siem.now()
        return moment + (_MILLISECOND if name == "endTime" else 0 * _MILLISECOND)

    async def acknowledge(self, request: web.Request) -> web.Response:
        """Acknowledge what is ACTIVE, and answer the alerts as they were before."""
        self.need(f"{PERMISSION}/alerts/ack")
        if request.match_info["id"] not in self.detectors:
            raise ErrorResponse(404, "Detector not found.")
        named = (await request.json())["alerts"]
        cases = [case for name in named if (case := self.siem.get(name)) is not None]
        if not cases:
            raise ErrorResponse(500, "Detector alert mapping is not valid")
        active = [case for case in cases if case.status is IncidentStatus.NEW]
        others = [self.show(case) for case in cases if case not in active]
        answer = {"acknowledged": [self.show(case) for case in active], "failed": others}
        now = self.siem.clock.now()
        for case in active:
            self.siem.put(replace(case, status=IncidentStatus.ACTIVE, changed_at=now))
        missing = [name for name in named if self.siem.get(name) is None]
        return self.json({**answer, "missing": missing})

    async def search_findings(self, request: web.Request) -> web.Response:
        self.need(f"{PERMISSION}/findings/get")
        names = request.query.get("findingIds", "").split(",")
        cases = [self.siem.get(name.removeprefix("finding-")) for name in names if name]
        findings = [self.finding(case) for case in cases if case is not None]
        return self.json({"total_findings": len(findings), "findings": findings})

    def finding(self, case: Case) -> dict[str, Any]:
        document = json.dumps(document_of(case.entities))
        return {
            "detectorId": DETECTOR,
            "id": f"finding-{case.id}",
            "related_doc_ids": [case.id],
            "index": "logs-windows",
            "queries": [
                {"id": "q", "name": "a rule", "fields": [], "tags": ["high", "attack.t1110.001"]}
            ],
            "timestamp": stamp(case.created_at),
            "document_list": [
                {"index": "logs-windows", "id": case.id, "found": True, "document": document}
            ],
        }

    def render(self, case: Case) -> dict[str, Any]:
        return {
            "detector_id": DETECTOR,
            "id": case.id,
            "version": -3,
            "schema_version": 4,
            "trigger_id": "t",
            "trigger_name": case.title,
            "finding_ids": [f"finding-{case.id}"],
            "related_doc_ids": [f"{case.id}|logs-windows"],
            "state": STATES[case.status],
            "error_message": case.description or None,
            "alert_history": [],
            "severity": SEVERITIES.get(case.severity, case.severity),
            "action_execution_results": [],
            "start_time": case.created_at.isoformat(),
            "last_notification_time": case.changed_at.isoformat(),
            "end_time": None,
            "acknowledged_time": None,
        }


def document_of(entities: Any) -> dict[str, Any]:
    """Return a document that names entities, with dotted names beside nested ones."""
    document: dict[str, Any] = {"event": {"kind": "event"}}
    for entity in entities:
        document.setdefault(FIELDS.get(entity.kind, "other"), []).append(entity.value)
    return document
