"""Simulator of ServiceNow's Table API, as far as the tracker uses it, with its quirks."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any, ClassVar

from aiohttp import encode_basic_auth, web

from tocsin.testing import ErrorResponse, ReceiverSimulator, RemoteObject
from tocsin.testing.conformance import ADDRESSES

USER, PASSWORD, API_KEY = "tocsin.integration", "a password of ServiceNow", "a key of ServiceNow"
GROUP = {"Network": "287ebd7da9fe198100f92cc8d1d2154e"}
INACTIVE = {"incident": ("7", "8"), "sn_si_incident": ("3", "7")}
_COLUMNS = {
    "sys_id", "number", "short_description", "description", "impact", "urgency", "priority",
    "state", "active", "correlation_id", "correlation_display", "assigned_to", "assignment_group",
    "category", "close_code", "close_notes", "work_notes", "comments", "caller_id",
    "sys_created_on",
}  # fmt: skip
_CONDITION = re.compile(r"(\w+)(=|IN)(.*)")
_PRIORITY = {"2": 1, "3": 2, "4": 3, "5": 4, "6": 5}
"""What impact and urgency make together, by their sum."""
_HIBERNATING = b"<html><body class='instance-hibernating-page'>Your instance is hibernating</body>"


class ServiceNowSimulator(ReceiverSimulator):
    table: ClassVar[str] = "incident"
    search_delay = timedelta(seconds=20)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.records: dict[str, dict[str, Any]] = {}
        self.tables: dict[str, list[dict[str, Any]]] = {
            "sys_choice": [
                {"name": self.table, "element": "close_code", "value": "Solution provided"},
                {"name": self.table, "element": "close_code", "value": "Duplicate"},
            ],
            "sys_dictionary": [{"name": self.table, "element": "caller_id", "mandatory": "true"}],
        }
        self.hidden: set[str] = set()
        """Columns that the account may not read."""
        self.mandatory_on_closing = {"close_code": "Close code", "close_notes": "Close notes"}
        self.read_only_when_inactive = False
        self.hibernates = self.is_cancelled = False

    def routes(self) -> list[web.RouteDef]:
        table = f"/api/now/table/{self.table}"
        return [
            web.get(table, self.query),
            web.post(table, self.insert),
            web.get(table + "/{sys_id}", self.show),
            web.patch(table + "/{sys_id}", self.change),
            web.get("/api/now/table/{name}", self.system_table),
        ]

    # what a test uses

    def is_signed(self, request: web.Request) -> bool:
        basic = request.headers.get("Authorization") == encode_basic_auth(USER, PASSWORD)
        return basic or request.headers.get("x-sn-apikey") == API_KEY

    def objects(self) -> list[RemoteObject]:
        return [
            RemoteObject(
                id=sys_id,
                observables=[address for address in ADDRESSES if address in record["description"]],
                notes=[text for text in record["journal"] if text.startswith("Tocsin event")],
                is_open=record["active"] == "true" and record["state"] not in ("6", "7", "8"),
            )
            for sys_id, record in self.records.items()
        ]

    def remove(self, identifier: str) -> None:
        del self.records[identifier]

    # the Table API

    async def query(self, request: web.Request) -> web.Response:
        """Return records that have every condition, without those that cannot be understood."""
        found = [
            record for record in self.records.values() if self.is_searchable(record["made_at"])
        ]
        for name, _, value in self._conditions(request.query["sysparm_query"]):
            if name in _COLUMNS - self.hidden:
                found = [row for row in found if row.get(name) == value]
        return self._shown(found[: int(request.query["sysparm_limit"])], request)

    async def system_table(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self.tables:
            raise ErrorResponse(400, f"Invalid table {name}")
        if "personalize" in self.lacks:
            raise ErrorResponse(
                403, "Insufficient rights to query records: Fields present in the query"
            )
        conditions = self._conditions(request.query["sysparm_query"])
        names = next(value.split(",") for field, _, value in conditions if field == "name")
        elements = [value for field, _, value in conditions if field == "element"]
        return self._shown(
            [
                row
                for row in self.tables[name]
                if row["name"] in names and (not elements or row["element"] in elements)
            ],
            request,
        )

    async def insert(self, request: web.Request) -> web.Response:
        number = self.next_number()
        record = {
            "sys_id": f"{number:032x}",
            "number": f"INC{number:07}",
            "state": "1",
            "active": "true",
            "description": "",
            "journal": [],
            "made_at": self.clock.now(),
        }
        self._write(record, await request.json(), request)
        self.records[record["sys_id"]] = record
        return self._shown(record, request, 201)

    async def show(self, request: web.Request) -> web.Response:
        return self._shown(self._record(request), request)

    async def change(self, request: web.Request) -> web.Response:
        record = self._record(request)
        if self.read_only_when_inactive and record["active"] == "false":
            raise ErrorResponse(403, "ACL Exception Update Failed due to security constraints")
        self._write(record, await request.json(), request)
        return self._shown(record, request)

    def _write(self, record: dict[str, Any], given: dict[str, Any], request: web.Request) -> None:
        """Store what is given: unknown columns are dropped, too long texts cut, nothing is said."""
        if "\x00" in json.dumps(given) or "\\u0000" in json.dumps(given):
            raise ErrorResponse(500, "Transaction cancelled")
        new = {column: str(value) for column, value in given.items() if column in _COLUMNS}
        if request.query.get("sysparm_input_display_value") == "true" and "assignment_group" in new:
            new["assignment_group"] = GROUP.get(new["assignment_group"], "")
        for name, most in (("short_description", 160), ("description", 4_000)):
            if name in new:
                new[name] = new[name][:most]
        closing = new.get("state") in ("6", *INACTIVE[self.table])
        missing = [label for name, label in self.mandatory_on_closing.items() if not new.get(name)]
        if closing and missing:
            words = f"The following fields are mandatory: {', '.join(missing)}"
            raise ErrorResponse(403, f"Data Policy Exception: {words}")
        record["journal"] += [
            new.pop(column) for column in ("work_notes", "comments") if column in new
        ]
        record |= new
        if {"impact", "urgency"} & set(new):
            weight = int(record.get("impact", 3)) + int(record.get("urgency", 3))
            record["priority"] = str(_PRIORITY[str(weight)])
        record["active"] = str(record["state"] not in INACTIVE[self.table]).lower()

    def _shown(self, found: Any, request: web.Request, status: int = 200) -> web.Response:
        fields = (
            set(request.query.get("sysparm_fields", ",".join(_COLUMNS)).split(",")) - self.hidden
        )
        as_shown = request.query.get("sysparm_display_value") == "true"

        def show(record: dict[str, Any]) -> dict[str, Any]:
            journal = "\n\n".join(
                f"2026-11-21 05:33:01 - Tocsin (Work notes)\n{entry}"
                for entry in reversed(record.get("journal", ()))
            )
            known = record | {"work_notes": journal if as_shown else "", "comments": ""}
            return {field_: known[field_] for field_ in fields if field_ in known}

        result = [show(row) for row in found] if isinstance(found, list) else show(found)
        return self.json({"result": result}, status)

    @staticmethod
    def _conditions(query: str) -> list[tuple[str, str, str]]:
        found = (_CONDITION.fullmatch(part) for part in query.split("^"))
        return [match.group(1, 2, 3) for match in found if match]

    def _record(self, request: web.Request) -> dict[str, Any]:
        if (found := self.records.get(request.match_info["sys_id"])) is None:
            raise ErrorResponse(404, "Record doesn't exist or ACL restricts the record retrieval")
        return found

    async def _handle(self, request: web.Request, handler: Any) -> web.Response:
        """Answer refusals as ServiceNow does, and pages where it sleeps."""
        if self.hibernates:
            return web.Response(body=_HIBERNATING, content_type="text/html")
        answer = await super()._handle(request, handler)
        if not isinstance(answer.body, bytes):
            return answer
        said = json.loads(answer.body)
        if answer.status >= 400:
            error = {"message": "Operation Failed", "detail": said["message"]}
            answer.body = json.dumps({"error": error, "status": "failure"}).encode()
        elif self.is_cancelled:
            error = {"message": "Transaction cancelled: maximum execution time exceeded"}
            answer.body = json.dumps({**said, "error": error, "status": "failure"}).encode()
        return answer


class SecurityIncidentSimulator(ServiceNowSimulator):
    table = "sn_si_incident"
