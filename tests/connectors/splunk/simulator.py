"""Simulator of a Splunk search head: jobs and the lookup of reviews, with their quirks."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from aiohttp import web

from tocsin import EntityKind, IncidentStatus, Severity
from tocsin.testing import Case, ErrorResponse, Fault, LogEvent, Simulator

from .spl_reader import Record, SplError, bounds_in, commands, condition, literals

TOKEN = "eyJraWQiOiJzcGx1bmsuc2VjcmV0In0.a-token"
URGENCIES = {severity: severity.value.lower() for severity in Severity}
STATUSES = {
    IncidentStatus.NEW: ("1", "New", "New", "false"),
    IncidentStatus.ACTIVE: ("2", "In Progress", "Open", "false"),
    IncidentStatus.CLOSED: ("5", "Closed", "Closed", "true"),
}
FIELDS = {
    EntityKind.IP: "src",
    EntityKind.HOST: "dest",
    EntityKind.USER: "user",
    EntityKind.DOMAIN: "query",
    EntityKind.URL: "url",
    EntityKind.FILE_HASH: "file_hash",
    EntityKind.FILE: "file_name",
    EntityKind.PROCESS: "process_name",
    EntityKind.EMAIL: "recipient",
    EntityKind.CVE: "cve",
}
CAPABILITIES = ["edit_notable_events", "edit_own_objects", "list_settings", "search"]
_JOBS = "/services/search/v2/jobs"


def epoch(moment: datetime) -> str:
    return f"{moment.timestamp():.6f}"


@dataclass
class Job:
    """A search: its results, as they were when it ended, and how often it was asked for."""

    rows: list[tuple[Case | None, Record]]
    began_at: datetime
    asked: int = 0


class SplunkSimulator(Simulator):
    """Findings as version 7 shows them: `_time` is when it happened, `_indextime` when it came.

    A version of a case but the first is a review of its finding.
    """

    statuses: ClassVar = STATUSES

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.jobs: dict[str, Job] = {}
        self.searches: list[str] = []
        """Every search that was begun."""
        self.busy_polls = 1
        """How often a job is still running when it is asked for."""
        self.longest_search = timedelta(seconds=30)
        self.most_running = 10
        self.messages: list[dict[str, str]] = []
        """What every job says about itself."""
        self.capabilities = list(CAPABILITIES)
        self.version: str | None = "9.2.1"
        self.indexes = ["notable"]
        self.finalized = self.failed = self.refuses_updates = False
        self.unsaid: set[str] = set()
        """The members that no job shows."""
        self.claimed = 0
        """How many results every job says that it has, where not those that it has."""
        self._reviews: list[tuple[datetime, str]] = []

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/services/authentication/current-context", self.context),
            web.get("/services/server/info", self.server_info),
            web.post(_JOBS, self.begin),
            web.get(_JOBS + "/{sid}", self.show_job),
            web.delete(_JOBS + "/{sid}", self.clear),
            web.get(_JOBS + "/{sid}/results", self.results),
            web.post("/services/notable_update", self.update),
        ]

    def is_signed(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == f"Bearer {TOKEN}"

    async def context(self, request: web.Request) -> web.Response:
        content = {"username": "tocsin", "capabilities": self.capabilities, "roles": ["tocsin"]}
        return self.json({"entry": [{"name": "context", "content": content}]})

    async def server_info(self, request: web.Request) -> web.Response:
        if self.version is None:
            raise ErrorResponse(403, "insufficient permission")
        return self.json({"entry": [{"name": "server-info", "content": {"version": self.version}}]})

    # search jobs

    async def begin(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        if sum(self._is_running(job) for job in self.jobs.values()) >= self.most_running:
            words = "The maximum number of concurrent historical searches has been reached."
            return self.json({"messages": [{"type": "FATAL", "text": words}]}, 503)
        self.searches.append(form["search"])
        try:
            rows = list(self._found(commands(form["search"]), form))
        except SplError as error:
            return self.json({"messages": [{"type": "FATAL", "text": str(error)}]}, 400)
        sid = f"{int(self.siem.now().timestamp())}.{next(self._numbers)}"
        self.jobs[sid] = Job(rows, self.siem.clock.now())
        return self.json({"sid": sid}, 201)

    def _is_running(self, job: Job) -> bool:
        """Return whether a job is under way, which it is not for ever if nobody asks for it."""
        age = self.siem.clock.now() - job.began_at
        return job.asked <= self.busy_polls and age < self.longest_search

    def _job(self, request: web.Request) -> Job:
        job = self.jobs.get(request.match_info["sid"])
        if job is None or job.began_at + self.page_token_lifetime <= self.siem.clock.now():
            raise ErrorResponse(404, "Unknown sid.")
        return job

    async def show_job(self, request: web.Request) -> web.Response:
        job = self._job(request)
        job.asked += 1
        done = not self._is_running(job)
        content = {
            "dispatchState": "DONE" if done else "RUNNING",
            "isDone": done,
            "isFailed": self.failed,
            "isFinalized": self.finalized,
            "resultCount": (self.claimed or len(job.rows)) if done else 0,
            "messages": self.messages,
        }
        content = {name: value for name, value in content.items() if name not in self.unsaid}
        return self.json({"entry": [{"name": request.match_info["sid"], "content": content}]})

    async def clear(self, request: web.Request) -> web.Response:
        self._job(request)
        del self.jobs[request.match_info["sid"]]
        return self.json({"messages": [{"type": "INFO", "text": "Search job cancelled."}]})

    async def results(self, request: web.Request) -> web.Response:
        job, offset = self._job(request), int(request.query["offset"])
        if self._is_running(job):
            return web.Response(status=204)
        if offset and self._takes(Fault.EXPIRED_PAGE):
            raise ErrorResponse(404, "Unknown sid.")
        count = min(int(request.query["count"]) or 10**9, self.most_per_page)
        page = job.rows[offset : offset + count]
        if any(case and case.id in self.siem.poisoned for case, _ in page):
            raise ErrorResponse(500, "the results cannot be shown")
        if self._takes(Fault.PARTIAL):
            page = page[: len(page) // 2]
        rows = [
            {**record, "_serial": str(offset + place)} for place, (_, record) in enumerate(page)
        ]
        return self.json(
            {
                "preview": False,
                "init_offset": offset,
                "messages": self.messages,
                "fields": [],
                "results": rows,
            }
        )

    # what searches find

    def _found(
        self, pipeline: Sequence[str], form: dict[str, str]
    ) -> Iterator[tuple[Case | None, Record]]:
        head, *rest = pipeline
        if head == "search `notable`":
            yield from self._findings(rest, form)
        elif head == "eventcount summarize=false index=notable" and not rest:
            yield from ((None, {"index": index, "count": "7"}) for index in self.indexes)
        elif match := re.fullmatch(r"inputlookup incident_review_lookup where (.*)", head):
            yield from ((None, item) for item in self._looked_up(match[1], rest))
        elif match := re.fullmatch(r"search \((.*)\) NOT index=notable \((.*)\)", head):
            yield from ((None, event) for event in self._events(match[2], rest, form))
        else:
            raise SplError(f"Unknown search command in {head!r}.")

    def _findings(
        self, rest: Sequence[str], form: dict[str, str]
    ) -> Iterator[tuple[Case | None, Record]]:
        wheres = [entry.removeprefix("where ") for entry in rest if entry.startswith("where ")]
        others = {one for one in rest if not one.startswith("where ")}
        known = {
            "eval tocsin_indexed=_indextime",
            "sort 0 tocsin_indexed event_id",
            "fields - _raw orig_raw",
        }
        if others - known or len(wheres) != 1:
            raise SplError(f"Unknown search command in {rest!r}.")
        wanted = condition(wheres[0])
        bounds = [_number(form.get(name, end)) for name, end in _BOUNDS.items()]
        found = []
        for case in self._candidates(wheres[0], bounds[2], bounds[3]):
            record = self.render(case)
            record["tocsin_indexed"] = record["_indextime"]
            if bounds[0] <= case.created_at.timestamp() < bounds[1] and wanted(record):
                found.append((record["tocsin_indexed"], self.finding_id(case), case))
        for _, _, case in sorted(found, key=lambda item: item[:2]):
            shown = {entry: value for entry, value in self.show(case).items() if entry != "_raw"}
            yield case, {**shown, "tocsin_indexed": shown.get("_indextime")}

    def _candidates(self, where: str, earliest: float, latest: float) -> Iterator[Case]:
        """Yield what an index leads to: findings by their ids, else those that came in a time."""
        if named := literals(where):
            names = [self.case_id(item) for item in named]
        else:
            names = [
                incident.id for incident, is_first in self._between(earliest, latest) if is_first
            ]
        for name in dict.fromkeys(names):
            if (case := self.siem.get(name)) is not None:
                yield case

    def _between(self, earliest: float, latest: float) -> Iterator[tuple[Case, bool]]:
        """Yield the versions of a time, and whether each is the first of its case."""
        timeline = self.siem._timeline
        key = lambda record: record[0].timestamp()  # noqa: E731
        for at, name in timeline[bisect_left(timeline, earliest, key=key) :]:
            if at.timestamp() >= latest:
                return
            for place, version in enumerate(self.siem._versions[name]):
                if version.changed_at == at:
                    yield version, place == 0

    def _cases(self) -> Iterator[Case]:
        for name in self.siem._versions:
            if (case := self.siem.get(name)) is not None:
                yield case

    def _looked_up(self, where: str, rest: Sequence[str]) -> Iterator[Record]:
        let_by = condition(where)
        match list(rest):
            case [stats, sort] if (stats, sort) == (
                "stats max(time) AS tocsin_reviewed BY rule_id",
                "sort 0 tocsin_reviewed rule_id",
            ):
                latest: dict[str, str] = {}
                for time, name in sorted(self._reviewed(*bounds_in(where))):
                    if let_by({"time": epoch(time)}):
                        latest[name] = epoch(time)
                for name, told in sorted(latest.items(), key=lambda record: (record[1], record[0])):
                    yield {"rule_id": name, "tocsin_reviewed": told}
            case [exact, "fields comment"] if exact.startswith("where "):
                exactly = condition(exact.removeprefix("where "))
                for case in self._cases():
                    row = {"rule_id": self.finding_id(case)}
                    if let_by(row) and exactly(row):
                        yield from ({"comment": comment} for comment in self.siem.comments(case.id))
            case _:
                raise SplError(f"Unknown search command in {rest!r}.")

    def _reviewed(self, earliest: float, latest: float) -> Iterator[tuple[datetime, str]]:
        """Yield when each finding was reviewed: what was shown late is, from then on."""
        yield from self._reviews
        now = self.siem.clock.now()
        for version, is_first in self._between(earliest, latest):
            if not is_first and (version.visible_at is None or version.visible_at <= now):
                yield version.changed_at, self.finding_id(version)

    def _events(self, near: str, rest: Sequence[str], form: dict[str, str]) -> Iterator[Record]:
        where, head, origin = rest
        if not where.startswith("where ") or origin != 'eval tocsin_origin=_bkt."/"._cd':
            raise SplError(f"Unknown search command in {rest!r}.")
        let_by, exactly = condition(near), condition(where.removeprefix("where "))
        earliest, latest = float(form["earliest_time"]), float(form["latest_time"])
        most = int(head.removeprefix("head "))
        for log_event in reversed(self.siem._log):
            record = self.render_log_event(log_event)
            within = earliest <= log_event.occurred_at.timestamp() < latest
            if within and let_by(record) and exactly(record) and most > 0:
                most -= 1
                yield self.show_log_event(log_event)

    # what is written

    async def update(self, request: web.Request) -> web.Response:
        """Update a finding; one that is not there counts as updated, as with Splunk."""
        form = await request.post()
        if self.refuses_updates:
            return self.json({"success": False, "message": "Invalid status"})
        for case in list(self._cases()):
            if self.finding_id(case) == form["ruleUIDs"]:
                self._reviews.append((self.siem.now(), self.finding_id(case)))
                if "comment" in form:
                    self.siem.comment(case.id, str(form["comment"]))
                self._stand(case, form.get("status"))
        return self.json({"success": True, "message": "1 event updated successfully"})

    def _stand(self, case: Case, number: object) -> None:
        for status, (known, *_) in self.statuses.items():
            if known == number:
                self.siem.put(replace(case, status=status, changed_at=self.siem.clock.now()))

    # how findings are shown

    def finding_id(self, case: Case) -> str:
        return case.id

    def case_id(self, finding: str) -> str:
        return finding

    def render(self, case: Case) -> dict[str, Any]:
        number, label, group, ends = self.statuses[case.status]
        came = self.siem._versions.get(case.id, [case])[0].changed_at
        named: dict[str, list[str]] = {}
        for entity in case.entities:
            named.setdefault(FIELDS[entity.kind], []).append(entity.value)
        return {
            "_bkt": "notable~89~0B5E2C7A-5B4E-4B62-9F0D-7F2C1D9E8A11",
            "_indextime": epoch(came),
            "_raw": f"{int(came.timestamp())}, search_name=...",
            "_si": [f"idx-{len(self.requests) % 3}", "notable"],
            "_time": case.created_at.astimezone(UTC).isoformat(timespec="milliseconds"),
            "event_id": self.finding_id(case),
            "extract_artifacts": '{"asset":["src","dest"],"identity":["user","user_role"]}',
            "index": "notable",
            "owner": "unassigned",
            "rule_description": case.description,
            "rule_id": self.finding_id(case),
            "rule_name": "Made Up",
            "rule_title": case.title,
            "search_name": "Threat - Made Up - Rule",
            "severity": "high",
            "source": "Threat - Made Up - Rule",
            "sourcetype": "stash",
            "src_risk_score": str(len(self.requests)),
            "status": number,
            "status_end": ends,
            "status_group": group,
            "status_label": label,
            "urgency": URGENCIES.get(case.severity, case.severity),
            **{name: record if len(record) > 1 else record[0] for name, record in named.items()},
        }

    def render_log_event(self, log_event: LogEvent) -> dict[str, Any]:
        named: dict[str, list[str]] = {}
        for entity in log_event.entities:
            named.setdefault(FIELDS[entity.kind], []).append(entity.value)
        return {
            "_time": log_event.occurred_at.isoformat(),
            "_raw": f"made up: {log_event.text}",
            "index": "main",
            "host": "sensor-1",
            "signature": log_event.text,
            "sourcetype": "made_up",
            "tocsin_origin": f"main~1~0B5E2C7A/{log_event.id}",
            **{name: record if len(record) > 1 else record[0] for name, record in named.items()},
        }


_BOUNDS = {
    "earliest_time": "0",
    "latest_time": "inf",
    "index_earliest": "0",
    "index_latest": "inf",
}


def _number(bound: str) -> float:
    return float("inf") if bound == "+1d" else float(bound)


class FindingsSimulator(SplunkSimulator):
    """Findings as version 8 shows them: their ids end with their time, and they take notes."""

    def routes(self) -> list[web.RouteDef]:
        base = "/servicesNS/nobody/missioncontrol"
        return [
            *super().routes()[:-1],
            web.get(base + "/public/v2/investigations/{id}/notes", self.list_notes),
            web.post(base + "/public/v2/investigations/{id}/notes", self.add_note),
            web.post(base + "/v1/investigations/{id}", self.set_status),
        ]

    def finding_id(self, case: Case) -> str:
        return f"{case.id}@@notable@@time{int(case.created_at.timestamp())}"

    def case_id(self, finding: str) -> str:
        return finding.partition("@@")[0]

    def _asked(self, request: web.Request) -> Case:
        name = request.match_info["id"]
        for case in self._cases():
            if self.finding_id(case) == name and name.endswith(
                f"@@time{request.query['notable_time']}"
            ):
                return case
        raise ErrorResponse(500, "MC_0050: there is no such finding")

    async def list_notes(self, request: web.Request) -> web.Response:
        notes = self.siem.comments(self._asked(request).id)[::-1][: int(request.query["limit"])]
        items = [{"id": str(place), "content": item} for place, item in enumerate(notes)]
        return self.json({"items": items})

    async def add_note(self, request: web.Request) -> web.Response:
        note = await request.json()
        self.siem.comment(self._asked(request).id, note["content"])
        return self.json({"id": "7", **note}, 201)

    async def set_status(self, request: web.Request) -> web.Response:
        case, change = self._asked(request), await request.json()
        self._stand(case, change["status"])
        return self.json({"status": change["status"]})
