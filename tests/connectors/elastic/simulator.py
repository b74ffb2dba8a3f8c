"""Simulators of Elasticsearch (alerts and a log) and Kibana (cases), with their quirks."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web
from tests.connectors.indices.simulator import EVER, Document, IndexSimulator

from tocsin import Entity, EntityKind, IncidentStatus, Window
from tocsin.testing import Case, ErrorResponse, Fault, LogEvent

API_KEY = "dG9jc2luOmEgc2VjcmV0"
INDEX = ".internal.alerts-security.alerts-default-000001"
ALERT_STATUSES = {"New": "open", "Active": "acknowledged", "Closed": "closed"}
CASE_STATUSES = {"New": "open", "Active": "in-progress", "Closed": "closed"}
TYPE_KEYS = {
    EntityKind.IP: "observable-type-ipv4",
    EntityKind.HOST: "observable-type-hostname",
    EntityKind.DOMAIN: "observable-type-domain",
}
LARGEST = 10_000
_MILLISECOND = timedelta(milliseconds=1)
# Where a document has entities of a kind, as nested as Elastic Common Schema has them
PLACES: Mapping[EntityKind, tuple[str, ...]] = {
    EntityKind.IP: ("source", "ip"),
    EntityKind.HOST: ("host", "name"),
    EntityKind.USER: ("user", "name"),
    EntityKind.DOMAIN: ("dns", "question", "name"),
    EntityKind.URL: ("url", "full"),
    EntityKind.FILE: ("file", "path"),
    EntityKind.FILE_HASH: ("file", "hash", "sha256"),
    EntityKind.PROCESS: ("process", "executable"),
    EntityKind.EMAIL: ("email", "from", "address"),
    EntityKind.CVE: ("vulnerability", "id"),
    EntityKind.CLOUD_RESOURCE: ("cloud", "instance", "id"),
}


def milliseconds(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def seven_digits(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "9Z"


def ecs(entities: Sequence[Entity]) -> dict[str, Any]:
    source: dict[str, Any] = {}
    for entity in entities:
        *way, last = PLACES[entity.kind]
        holder = source
        for name in way:
            holder = holder.setdefault(name, {})
        holder.setdefault(last, []).append(entity.value)
    return source


class ElasticSimulator(IndexSimulator):
    """What of both APIs the provider uses; this class shows cases of the kit as alerts."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._near: list[Case] = []
        """Alerts that a query may let by: there are many, and it is asked often."""
        self.hides = False
        """Whether lists of cases are empty, whatever they say that there is."""
        self.sorts_by_change = True
        """Kibana before 8.9 sorts by the time of creation whatever it is asked."""
        self.lacking: list[str] = []
        """The indexes that the key may not read."""
        self.before_patch: Callable[[], None] = lambda: None
        """Called before a case is changed, so that others may change it meanwhile."""

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/_security/user/_has_privileges", self.privileges),
            *super().routes(),
            web.get("/api/cases/_find", self.find_cases),
            web.get("/api/cases/{id}", self.get_case),
            web.get("/api/cases/{id}/alerts", self.list_alerts),
            web.get("/api/cases/{id}/comments/_find", self.find_comments),
            web.post("/api/cases/{id}/comments", self.add_comment),
            web.patch("/api/cases", self.change_case),
            web.get("/api/note", self.list_notes),
            web.patch("/api/note", self.add_note),
            web.post("/api/detection_engine/signals/status", self.set_status),
        ]

    def is_signed(self, request: web.Request) -> bool:
        if request.path.startswith("/api/") and "kbn-xsrf" not in request.headers:
            raise ErrorResponse(400, "Request must contain a kbn-xsrf header.")
        return request.headers.get("Authorization") == f"ApiKey {API_KEY}"

    async def privileges(self, request: web.Request) -> web.Response:
        wanted = (await request.json())["index"]
        granted = {
            name: dict.fromkeys(each["privileges"], name not in self.lacking)
            for each in wanted
            for name in each["names"]
        }
        return self.json(
            {"username": "tocsin", "has_all_requested": not self.lacking, "index": granted}
        )

    # Elasticsearch

    def _matching(self, query: dict[str, Any], indices: str) -> Iterator[Document]:
        names = query.get("ids", {}).get("values")
        start, end = bounds_of(query)
        changed = (self.siem.get(name) for name in self._names_between(start, end))
        found = changed if names is None else map(self.siem.get, map(self.case_id, names))
        self._near = [
            case
            for case in found
            if case
            and any(
                start <= item <= end for item in (self._first(case).changed_at, case.changed_at)
            )
        ]
        return super()._matching(query, indices)

    def documents(self, window: Window, indices: str = "") -> Iterator[Document]:
        is_of_alerts = indices.startswith(".alerts-security.alerts-")
        for document in self._alerts() if is_of_alerts else self._logged():
            if document.at in window:
                yield document

    def _alerts(self) -> Iterator[Document]:
        for case in self._near:
            told, poisoned = self._timestamp(case), case.id in self.siem.poisoned
            name, source = self.alert_id(case), {"@timestamp": told, **self._flat(case)}
            yield Document(INDEX, name, source, {}, datetime.fromisoformat(told), poisoned)

    def _logged(self) -> Iterator[Document]:
        for of in self.siem._log:
            source = {"@timestamp": milliseconds(of.occurred_at), **self._flat(of)}
            yield Document("logs-made.up-default", of.id, source, {}, of.occurred_at)

    def shown(self, document: Document) -> dict[str, Any]:
        if document.index == INDEX:
            case = self.siem.get(self.case_id(document.id))
            assert case is not None
            return self.shown_alert(case)
        return self.show_log_event(
            next(incident for incident in self.siem._log if incident.id == document.id)
        )

    def shown_alert(self, case: Case) -> dict[str, Any]:
        """Return an alert, or nonsense that tells of which it is."""
        shown = self.show(case)
        return {"_id": {"unexpected": case.id}, **shown} if case.malformed else shown

    def case_id(self, alert: str) -> str:
        return alert

    def is_case(self, case: Case) -> bool:
        """Return whether a case of the kit is one of Kibana's, and no alert."""
        return False

    def _first(self, case: Case) -> Case:
        return self.siem._versions.get(case.id, [case])[0]

    def _names_between(self, start: datetime, end: datetime) -> Iterable[str]:
        """Return the incidents of which a version is from a time: looking at all takes minutes."""
        timeline = self.siem._timeline
        first = bisect_left(timeline, (start, ""))
        last = bisect_right(timeline, end, key=lambda entry: entry[0])
        return dict.fromkeys(name for _, name in timeline[first:last])

    def _cases(self) -> Iterator[Case]:
        for name in self.siem._versions:
            if (case := self.siem.get(name)) is not None:
                yield case

    def alert_id(self, case: Case) -> str:
        return case.id

    def _flat(self, of: Case | LogEvent) -> dict[str, list[str]]:
        """Return what the index knows of a document, whatever it shows."""
        flat: dict[str, list[str]] = {}
        for entity in of.entities:
            flat.setdefault(".".join(PLACES[entity.kind]), []).append(entity.value)
        if isinstance(of, Case):
            if told := self._status_changed(of):
                flat["kibana.alert.workflow_status_updated_at"] = [told]
            if self.is_case(of):  # its alert is attached to it, and none by itself
                flat["kibana.alert.building_block_type"] = ["default"]
        return flat

    def _timestamp(self, case: Case) -> str:
        """Return when an alert was made, or what was suppressed was added to it."""
        is_moved = case.status is IncidentStatus.NEW
        return milliseconds(case.changed_at if is_moved else self._first(case).changed_at)

    def _status_changed(self, case: Case) -> str | None:
        is_new = case.status is IncidentStatus.NEW
        return None if is_new else milliseconds(case.changed_at)

    def render(self, case: Case) -> dict[str, Any]:
        """Return an alert: dotted names beside nested ones, and digits that nobody asked for."""
        source = {
            "@timestamp": self._timestamp(case),
            "kibana": {"alert": {"rule": {"threat": [{"technique": [{"id": "T1110"}]}]}}},
            "kibana.alert.original_time": seven_digits(case.created_at),
            "kibana.alert.reason": case.description,
            "kibana.alert.risk_score": 47,
            "kibana.alert.rule.name": case.title,
            "kibana.alert.severity": getattr(case.severity, "value", case.severity).lower(),
            "kibana.alert.workflow_status": ALERT_STATUSES[case.status],
            **ecs(case.entities),
        }
        if told := self._status_changed(case):
            source["kibana.alert.workflow_status_updated_at"] = told
        return source

    def render_log_event(self, log_event: LogEvent) -> dict[str, Any]:
        return {
            "@timestamp": seven_digits(log_event.occurred_at),
            "event": {"dataset": "made.up", "action": "made-up"},
            "message": log_event.text,
            **ecs(log_event.entities),
        }

    async def list_notes(self, request: web.Request) -> web.Response:
        name = request.query["documentIds"]
        found = [note for case in self._cases() for note in self._notes_of(case, name)]
        return self.json({"totalCount": len(found), "notes": found})

    def _notes_of(self, case: Case, name: str) -> Iterator[dict[str, Any]]:
        if self.alert_id(case) == name:
            for note in self.siem.comments(case.id):
                yield {"eventId": name, "note": note, "timelineId": ""}

    async def add_note(self, request: web.Request) -> web.Response:
        if not (note := (await request.json()).get("note")):
            raise ErrorResponse(400, "[request body]: note: Required")
        for case in self._cases():
            if self.alert_id(case) == note["eventId"]:
                self.siem.comment(case.id, note["note"])
        return self.json({"note": {"noteId": "7", **note}})

    async def set_status(self, request: web.Request) -> web.Response:
        """Change alerts as Kibana does: what stands so already is found, and left alone."""
        change, found, updated = await request.json(), 0, 0
        for case in list(self._cases()):
            if self.alert_id(case) in change["signal_ids"]:
                found += 1
                updated += self._stand(case, change["status"], ALERT_STATUSES)
        return self.json({"total": found, "updated": updated, "noops": found - updated})

    def _stand(self, case: Case, word: str, words: Mapping[str, str]) -> bool:
        [status] = [status for status, item in words.items() if item == word]
        if case.status == status:
            return False
        changed = {"status": IncidentStatus(status), "changed_at": self.siem.clock.now()}
        self.siem.put(replace(case, **changed))
        return True

    # Kibana's cases, which the other class has

    async def find_cases(self, request: web.Request) -> web.Response:
        return self.json({"cases": [], "page": 1, "per_page": 1, "total": 0})

    async def get_case(self, request: web.Request) -> web.Response:
        raise ErrorResponse(404, "there is no such case")

    list_alerts = find_comments = add_comment = change_case = get_case


class CasesSimulator(ElasticSimulator):
    """Shows the kit's cases as cases; to each an alert is attached that has the users in it."""

    async def find_cases(self, request: web.Request) -> web.Response:
        query = request.query
        if int(query["perPage"]) > 100 or int(query["page"]) * int(query["perPage"]) > LARGEST:
            raise ErrorResponse(400, "The number of documents is too high")
        found = sorted(
            self._listed(query), key=lambda record: record[0], reverse=self._newest(query)
        )
        size = min(int(query["perPage"]), self.most_per_page)
        start = (int(query["page"]) - 1) * size
        page = [case for _, case in found[start : start + size]]
        if any(case.id in self.siem.poisoned for case in page):
            raise ErrorResponse(500, "a case cannot be shown")
        if self._takes(Fault.PARTIAL):
            page = page[: len(page) // 2]
        content = {"page": int(query["page"]), "per_page": size, "total": len(found)}
        shown = [] if self.hides else [self.show(case) for case in page]
        return self.json({"cases": shown, **content})

    def _newest(self, query: Mapping[str, str]) -> bool:
        return query.get("sortOrder", "desc") == "desc"

    def _listed(self, query: Mapping[str, str]) -> Iterator[tuple[Any, Case]]:
        by_change = query.get("sortField") == "updatedAt" and self.sorts_by_change
        for case in filter(self.is_case, self._made(query)):
            # What has no time of change comes last, whatever the order
            sort = case.changed_at if self._is_changed(case) else datetime.min.replace(tzinfo=UTC)
            yield ((sort if by_change else case.created_at), case.id), case

    def _made(self, query: Mapping[str, str]) -> Iterator[Case]:
        """Yield what was made in the time of a query, to the millisecond."""
        if _EVER.keys().isdisjoint(query):
            yield from self._cases()
            return
        start, end = (_moment(query.get(item, told)) for item, told in _EVER.items())
        births = self.siem._births
        for created_at, name in births[bisect_left(births, (start, "")) :]:
            if created_at.replace(microsecond=created_at.microsecond // 1000 * 1000) > end:
                return
            if (case := self.siem.get(name)) is not None:
                yield case

    def _is_changed(self, case: Case) -> bool:
        return case.changed_at != case.created_at

    def render(self, case: Case) -> dict[str, Any]:
        if not self.is_case(case):
            return super().render(case)
        observables = [
            {"typeKey": TYPE_KEYS[entity.kind], "value": entity.value, "description": None}
            for entity in case.entities
            if entity.kind in TYPE_KEYS
        ]
        return {
            "id": case.id,
            "version": f"W{len(self.siem._versions.get(case.id, []))},1",
            "incremental_id": case.number,
            "owner": "securitySolution",
            "title": case.title,
            "description": case.description,
            "severity": getattr(case.severity, "value", case.severity).lower(),
            "status": CASE_STATUSES[case.status],
            "created_at": milliseconds(case.created_at),
            "updated_at": milliseconds(case.changed_at) if self._is_changed(case) else None,
            "closed_at": None,
            "totalAlerts": 1 if self._users(case) else 0,
            "totalComment": len(self.siem.comments(case.id)),
            "observables": observables,
        }

    def _users(self, case: Case) -> list[Entity]:
        return [entity for entity in case.entities if entity.kind not in TYPE_KEYS]

    async def get_case(self, request: web.Request) -> web.Response:
        return self.json(self.show(self.get(request.match_info["id"])))

    async def list_alerts(self, request: web.Request) -> web.Response:
        case = self.get(request.match_info["id"])
        told = {"index": INDEX, "attached_at": milliseconds(case.changed_at)}
        return self.json([{"id": self.alert_id(case), **told}])

    def alert_id(self, case: Case) -> str:
        return f"alert-of-{case.id}" if self.is_case(case) else case.id

    def case_id(self, alert: str) -> str:
        return alert.removeprefix("alert-of-")

    def is_case(self, case: Case) -> bool:
        return True

    def shown_alert(self, case: Case) -> dict[str, Any]:
        if not self.is_case(case):
            return super().shown_alert(case)
        return super().render(replace(case, entities=tuple(self._users(case)), malformed=False))

    async def find_comments(self, request: web.Request) -> web.Response:
        case = self.get(request.match_info["id"])
        written = [{"type": "user", "comment": comment} for comment in self.siem.comments(case.id)]
        size, page = int(request.query["perPage"]), int(request.query["page"])
        shown = written[::-1][(page - 1) * size : page * size]
        content = {"page": page, "per_page": size, "total": len(written)}
        return self.json({"comments": shown, **content})

    async def add_comment(self, request: web.Request) -> web.Response:
        case, comment = self.get(request.match_info["id"]), await request.json()
        self.siem.comment(case.id, comment["comment"])
        return self.json(self.show(case))

    async def change_case(self, request: web.Request) -> web.Response:
        [change] = (await request.json())["cases"]
        self.before_patch()
        case = self.get(change["id"])
        if self.render(case)["version"] != change["version"]:
            raise ErrorResponse(409, "These cases have been updated. Please refresh before saving.")
        if not self._stand(case, change["status"], CASE_STATUSES):
            raise ErrorResponse(406, "All update fields are identical to current version.")
        return self.json([self.show(self.get(change["id"]))])


_EVER = {"from": "0001-01-01T00:00:00+00:00", "to": "9999-01-01T00:00:00+00:00"}


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text.replace(" ", "+"))


def bounds_of(query: Any) -> tuple[datetime, datetime]:
    """Return the earliest and the latest time that any range of a query begins or ends with."""
    told = [datetime.fromisoformat(text) for text in _texts_of(query, ("gte", "lt"))]
    return (min(told) - _MILLISECOND, max(told)) if told else (EVER.start, EVER.end)


def _texts_of(content: Any, names: Sequence[str]) -> Iterator[str]:
    inner = content.items() if isinstance(content, dict) else enumerate(content)
    for name, value in inner:
        if name in names and isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            yield from _texts_of(value, names)
