"""Simulator of a QRadar console: the part that the provider uses, with its quirks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Any, ClassVar

from aiohttp import web

from tocsin import Entity, EntityKind, IncidentStatus, Severity
from tocsin.testing import Case, ErrorResponse, Fault, run_simulator

from .ariel import ArielSimulator, milliseconds, span
from .reading import BadQueryError, alternatives, bounds, wanted

TOKEN = "0f1e2d3c-0000-4000-8000-9a8b7c6d5e4f"
MAGNITUDES = dict(zip(Severity, (1, 3, 5, 8, 10), strict=True))
RULE = 100_405
REASON = 54
LONGEST_NOTE = 2_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LISTED = {
    *("last_persisted_time", "last_updated_time", "close_time", "start_time"),
    "first_persisted_time",
}
LATER = frozenset({"last_persisted_time", "first_persisted_time"})
"""What older versions of the API do not tell."""
TYPES = {0: "Source IP", 1: "Destination IP", 2: "Event Name", 3: "Username", 7: "Hostname"}


class QRadarSimulator(ArielSimulator):
    """Offenses, which have numbers for ids.

    Two clocks: a case that is closed has a `close_time`, and nothing else of it changes then. Its
    `last_persisted_time` has whole seconds.
    """

    most_per_page: ClassVar[int] = 10_000

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.versions: list[dict[str, Any]] = [
            {"id": 27, "version": "26.0", "deprecated": False, "removed": False},
            {"id": 28, "version": "27.0", "deprecated": False, "removed": False},
            {"id": 18, "version": "17.0", "deprecated": True, "removed": True},
        ]
        self.lacks: set[str] = set()
        """Permissions that the authorized service does not have."""
        self.is_old = False
        """Whether it is a version that tells no `last_persisted_time`."""
        self.rules = {RULE: "Many Things at Once"}
        self.types = dict(TYPES)
        self.reasons = {1: "Non-Issue", REASON: "Mended"}
        self.absent: set[str] = set()
        """The look-ups that the console does not have, by the ends of their paths."""
        self.untold: set[str] = set()
        """The names that look-ups do not tell yet."""
        self.breaking: set[str] = set()
        """The names that break each look-up that asks for them."""
        self.counts_parts = False
        """Whether the total that is told of a list is only that of the part."""
        self.follows_order = True
        self.changes: list[dict[str, str]] = []
        self._addresses: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._ordered: list[int] = []

    def routes(self) -> list[web.RouteDef]:
        offense = "/api/siem/offenses/{id:[0-9]+}"
        return [
            web.get("/api/help/versions", self.list_versions),
            web.get("/api/siem/offenses", self.offenses),
            web.get(offense, self.offense),
            web.post(offense, self.change),
            web.get(offense + "/notes", self.notes),
            web.post(offense + "/notes", self.note),
            web.get("/api/siem/source_addresses", self.sources),
            web.get("/api/siem/local_destination_addresses", self.destinations),
            web.get("/api/siem/offense_types", self.list_types),
            web.get("/api/siem/offense_closing_reasons", self.list_reasons),
            web.get("/api/analytics/rules", self.list_rules),
            *self.searching(),
        ]

    def is_signed(self, request: web.Request) -> bool:
        known = {version["version"] for version in self.versions}
        asked = request.headers.get("Version")
        if asked is not None and asked not in known:
            raise ErrorResponse(422, "the version of the API is not supported")
        return request.headers.get("SEC") == TOKEN

    def need(self, permission: str) -> None:
        if permission in self.lacks:
            raise ErrorResponse(
                403, "User does not have the required capability to perform the action"
            )

    async def list_versions(self, request: web.Request) -> web.Response:
        return self.json(self.versions)

    # offenses

    async def offenses(self, request: web.Request) -> web.Response:
        self.need("Offenses")
        fields = self.fields(request)
        try:
            either = alternatives(request.query.get("filter", "id > 0"))
            limits = [bounds(item, dict.fromkeys(self.known())) for item in either]
        except BadQueryError as error:
            raise ErrorResponse(422, str(error)) from error
        order = request.query.get("sort")
        if order not in ("+id", "-id"):
            raise ErrorResponse(422, f"The sort field or order is not valid: {order}")
        cases = {offense_id(case): case for one in limits for case in self.found(one)}
        found = [cases[entry] for entry in sorted(cases, reverse=order == "-id")]
        page = self.cut(request, found if self.follows_order else found[::-1])
        if any(case.id in self.siem.poisoned for case in page):
            raise ErrorResponse(
                500, "An error occurred while the offense list was being retrieved."
            )
        records = [
            {entry: value for entry, value in self.show(case).items() if entry in fields}
            for case in page
        ]
        return self.listed(request, records, len(found))

    def known(self) -> set[str]:
        return {"id", *LISTED} - (LATER if self.is_old else frozenset())

    def fields(self, request: web.Request) -> set[str]:
        asked = "".join(_outside_of_brackets(request.query["fields"])).split(",")
        if self.is_old and not LATER.isdisjoint(asked):
            raise ErrorResponse(422, "A request parameter is not valid: fields")
        return set(asked)

    def found(self, limits: dict[str, tuple[int, float]]) -> Iterator[Case]:
        """Yield the offenses within limits, in the order of their ids."""
        after, _ = limits.pop("id", (0, 0))
        if not limits:
            self._number_all()
            numbers = self._ordered[bisect_left(self._ordered, after) :]
            yield from filter(None, (self.siem.get(self._names[number]) for number in numbers))
            return
        [(field, (start, end))] = limits.items()
        cases = {offense_id(value): value for value in self._with(field, start, int(end))}
        yield from (cases[item] for item in sorted(cases) if item >= after)

    def _with(self, field: str, start: int, end: int) -> Iterator[Case]:
        """Yield the offenses with a time from one millisecond to another."""
        ends = (_EPOCH + item * timedelta(milliseconds=1) for item in (start, end))
        dates = (
            self.siem._births
            if field in ("start_time", "first_persisted_time")
            else self.siem._timeline
        )
        first, last = (bisect_left(dates, (end, "")) for end in ends)
        for _, name in dates[first:last]:
            case = self.siem.get(name)
            if case is not None and start <= (self.times(case)[field] or 0) < end:
                yield case

    def times(self, case: Case) -> dict[str, int | None]:
        """Return the times of a case, as its record has them."""
        before = self._before(case)
        ended = list(takewhile(_is_closed, (case, *before)))
        is_closing = len(ended) == 1 and bool(before)
        persisted = before[0] if is_closing else case
        seconds = milliseconds(persisted.changed_at.replace(microsecond=0))
        return {
            "start_time": milliseconds(case.created_at),
            "first_persisted_time": milliseconds(case.created_at.replace(microsecond=0)),
            "last_updated_time": milliseconds(persisted.changed_at),
            "last_persisted_time": seconds,
            "close_time": milliseconds(ended[-1].changed_at) if ended else None,
        }

    def _before(self, case: Case) -> list[Case]:
        """Return the versions of a case before this one, the latest first."""
        versions = self.siem._versions.get(case.id, [])
        return [version for version in reversed(versions) if version.changed_at < case.changed_at]

    def _number_all(self) -> None:
        versions = self.siem._versions
        if len(self._names) != len(versions):
            self._names = {offense_id(its[0]): name for name, its in versions.items()}
            self._ordered = sorted(self._names)

    def case(self, request: web.Request) -> Case:
        self._number_all()
        return self.get(self._names.get(int(request.match_info["id"]), ""))

    async def offense(self, request: web.Request) -> web.Response:
        self.need("Offenses")
        fields = self.fields(request)
        record = self.show(self.case(request))
        return self.json({item: value for item, value in record.items() if item in fields})

    async def change(self, request: web.Request) -> web.Response:
        self.need("Offenses")
        case, query = self.case(request), dict(request.query)
        if case.status is IncidentStatus.CLOSED:
            raise ErrorResponse(409, "Request cannot be completed due to the state of the offense.")
        status = IncidentStatus.ACTIVE if query.get("follow_up") == "true" else IncidentStatus.NEW
        if query.get("status") == "CLOSED":
            if int(query.get("closing_reason_id", 0)) not in self.reasons:
                raise ErrorResponse(422, "closing_reason_id is not valid")
            status = IncidentStatus.CLOSED
        self.changes.append(query)
        self.siem.put(replace(case, status=status, changed_at=self.siem.clock.now()))
        return self.json({"id": offense_id(case)})

    async def notes(self, request: web.Request) -> web.Response:
        texts = self.siem.comments(self.case(request).id)
        notes = [{"id": item, "note_text": words} for item, words in enumerate(texts, 1)]
        return self.listed(request, self.cut(request, notes), len(notes))

    async def note(self, request: web.Request) -> web.Response:
        self.need("Offenses, for notes")
        if len(request.raw_path) > 8_000:
            raise ErrorResponse(414, "Request-URI Too Long")
        words = request.query["note_text"]
        if len(words) > LONGEST_NOTE:
            raise ErrorResponse(422, "note_text is too long")
        self.siem.comment(self.case(request).id, words)
        return self.json({"id": 1, "note_text": words, "username": "API_token: tocsin"}, 201)

    # what ids stand for

    def address_id(self, address: str) -> int:
        return self._addresses.setdefault(address, len(self._addresses) + 1)

    async def sources(self, request: web.Request) -> web.Response:
        return self.looked_up(
            request, "source_ip", {address: name for name, address in self._addresses.items()}
        )

    async def destinations(self, request: web.Request) -> web.Response:
        names = {address: name for name, address in self._addresses.items()}
        return self.looked_up(request, "local_destination_ip", names)

    async def list_types(self, request: web.Request) -> web.Response:
        return self.looked_up(request, "name", self.types)

    async def list_reasons(self, request: web.Request) -> web.Response:
        if request.query["include_deleted"] != "true":
            raise ErrorResponse(422, "a reason that was deleted is not told")
        return self.looked_up(request, "text", self.reasons)

    async def list_rules(self, request: web.Request) -> web.Response:
        self.need("View Custom Rules")
        return self.looked_up(request, "name", self.rules)

    def looked_up(self, request: web.Request, field: str, names: dict[int, str]) -> web.Response:
        if request.query["fields"] != f"id,{field}":
            raise ErrorResponse(422, "A request parameter is not valid: fields")
        if request.path.rpartition("/")[2] in self.absent:
            raise ErrorResponse(404, "The requested resource was not found")
        asked = wanted(request.query["filter"]) if "filter" in request.query else list(names)
        told = {
            item: name for item in asked if (name := names.get(item)) and name not in self.untold
        }
        if not self.breaking.isdisjoint(told.values()):
            raise ErrorResponse(500, "An error occurred while the list was being retrieved.")
        found = [{"id": value, field: name} for value, name in told.items()]
        return self.listed(request, self.cut(request, found), len(found))

    # ranges

    def cut(self, request: web.Request, found: list[Any]) -> list[Any]:
        first, last = span(request)
        page = found[first : min(last + 1, first + self.most_per_page)]
        return page[: len(page) // 2] if self._takes(Fault.PARTIAL) else page

    def listed(self, request: web.Request, records: list[Any], total: int) -> web.Response:
        first, count = span(request)[0], len(records)
        told = f"{first}-{first + count - 1}" if count else "*"
        answer = self.json(records)
        total = count if self.counts_parts else total
        answer.headers["Content-Range"] = f"items {told}/{total}"
        return answer

    # shapes

    def render(self, case: Case) -> dict[str, Any]:
        of = {
            kind: [entity.value for entity in case.entities if entity.kind is kind]
            for kind in EntityKind
        }
        users, hosts = of[EntityKind.USER], of[EntityKind.HOST]
        magnitude = MAGNITUDES.get(case.severity, case.severity)
        times = {
            value: at
            for value, at in self.times(case).items()
            if not (self.is_old and value in LATER)
        }
        closed = case.status is IncidentStatus.CLOSED
        return {
            "id": offense_id(case),
            "description": f"{case.title}\n",
            "categories": [case.description] if case.description else [],
            "status": "CLOSED" if closed else "OPEN",
            "follow_up": case.status is IncidentStatus.ACTIVE,
            "assigned_to": None,
            "closing_user": "admin" if closed else None,
            "closing_reason_id": REASON if closed else None,
            "magnitude": magnitude,
            "severity": magnitude,
            "offense_type": 3 if users else 2,
            "offense_source": users[0] if users else "Made Up",
            "domain_id": 0,
            "event_count": 12,
            "source_network": "other",
            "destination_networks": ["other"],
            "source_address_ids": [self.address_id(item) for item in of[EntityKind.IP]],
            "local_destination_address_ids": [],
            "rules": [{"id": RULE, "type": "CRE_RULE"}],
            "log_sources": [
                {"id": 63, "name": "Custom Rule Engine-8 :: qradar", "type_name": "EventCRE"},
                *(
                    {"id": 112, "name": f"Linux @ {host}", "type_name": "LinuxServer"}
                    for host in hosts
                ),
            ],
            **times,
        }


def offense_id(case: Case) -> int:
    """Return the id of the offense of a case: that of the case if it can be, else its number."""
    return int(case.id) if case.id.isdecimal() else case.number


def _is_closed(case: Case) -> bool:
    return case.status is IncidentStatus.CLOSED


def _outside_of_brackets(words: str) -> Iterator[str]:
    depth = 0
    for character in words:
        depth += (character == "(") - (character == ")")
        if not depth and character != ")":
            yield character


def shown(entities: Iterable[Entity]) -> Iterator[Entity]:
    """Yield those of the entities of a case that an offense can show: of users, the first."""
    kinds = {EntityKind.IP, EntityKind.HOST, EntityKind.USER}
    users = 0
    for entity in entities:
        users += entity.kind is EntityKind.USER
        if entity.kind in kinds and (entity.kind is not EntityKind.USER or users == 1):
            yield entity


SETTINGS = {"token": TOKEN}

if __name__ == "__main__":
    run_simulator(QRadarSimulator)
