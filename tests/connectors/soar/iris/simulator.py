"""Simulator of DFIR-IRIS 2.4: the part of its API that the channel uses, with its quirks.

It always inserts, answers every error with 400, and ignores unknown members. Its numeric IDs differ
from those of a fresh installation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count
from typing import Any, ClassVar

from aiohttp import web

from tocsin.testing import ErrorResponse, ReceiverSimulator, RemoteObject

KEY = "a key of IRIS"
CUSTOMER = "Acme"
OTHERS = "Others, which the user may not see"
PERMISSIONS = {"alerts_read": 0x4, "alerts_write": 0x8, "customers_read": 0x40}
_NEXT = count(901)


def _numbered(*names: str) -> dict[str, int]:
    return {name: next(_NEXT) for name in names}


STATUSES = _numbered("Unspecified", "New", "Assigned", "Closed", "Merged", "Escalated")
SEVERITIES = _numbered("Unspecified", "Medium", "Low", "Informational", "High", "Critical")
TYPES = _numbered("other", "ip-any", "domain", "url", "account", "hostname", "sha256")
TLPS = _numbered("red", "amber", "green")
CUSTOMERS = _numbered(CUSTOMER, OTHERS)
LISTS = {
    "severities": ("severity", SEVERITIES),
    "alert-status": ("status", STATUSES),
    "ioc-types": ("type", TYPES),
    "tlp": ("tlp", TLPS),
    "customers": ("customer", {CUSTOMER: CUSTOMERS[CUSTOMER]}),
}
NEEDED = ("alert_title", "alert_severity_id", "alert_status_id", "alert_customer_id")
CHANGEABLE = ("alert_status_id", "alert_note", "alert_owner_id", "alert_tags")
ME = 31


class IrisSimulator(ReceiverSimulator):
    permissions: ClassVar = tuple(PERMISSIONS)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.alerts: dict[int, dict[str, Any]] = {}
        self.patterns: dict[str, str] = {}
        """The regular expressions of IOC types, which administrators can set."""
        self.takes_iocs = True
        """Whether an update changes IOCs."""
        self.next_error: str | None = None
        """Failure of the next change, after the change was stored."""

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/user/has-permission", self.has_permission),
            web.get("/manage/{what}/list", self.names),
            web.get("/alerts/filter", self.filter),
            web.post("/alerts/add", self.add),
            web.get(r"/alerts/{id:\d+}", self.show),
            web.post(r"/alerts/update/{id:\d+}", self.change),
            web.get(r"/alerts/{id:\d+}/comments/list", self.comments),
            web.post(r"/alerts/{id:\d+}/comments/add", self.comment),
        ]

    def is_signed(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == f"Bearer {KEY}"

    def objects(self) -> list[RemoteObject]:
        return [
            RemoteObject(
                id=str(alert["alert_id"]),
                observables=[ioc["ioc_value"] for ioc in alert["iocs"]],
                notes=alert["comments"],
                is_open=alert["alert_status_id"] in (STATUSES["New"], STATUSES["Assigned"]),
            )
            for alert in self.alerts.values()
        ]

    def remove(self, identifier: str) -> None:
        del self.alerts[int(identifier)]

    def success(self, data: Any, message: str = "") -> web.Response:
        return self.json({"status": "success", "message": message, "data": data})

    async def has_permission(self, request: web.Request) -> web.Response:
        asked = await request.json()
        if PERMISSIONS.get(asked["permission_name"]) != asked["permission_value"]:
            raise ErrorResponse(400, "Permission value-name mismatch")
        self.require(asked["permission_name"])
        return self.success([], "User has permission")

    def require(self, permission: str) -> None:
        if permission in self.lacks:
            raise ErrorResponse(403, "Permission denied")

    async def names(self, request: web.Request) -> web.Response:
        what = request.match_info["what"]
        if what == "customers":
            self.require("customers_read")
        member, numbers = LISTS[what]
        found = numbers.items()
        return self.success([{f"{member}_id": n, f"{member}_name": name} for name, n in found])

    async def filter(self, request: web.Request) -> web.Response:
        self.require("alerts_read")
        part, most = request.query.get("source_reference", ""), int(request.query["per_page"])
        found = [
            alert for alert in self.alerts.values() if part in (alert["alert_source_ref"] or "")
        ]
        page = int(request.query.get("page", 1))
        more = len(found) > page * most
        shown = [self._shown(item) for item in found[(page - 1) * most : page * most]]
        return self.success({"alerts": shown, "next_page": page + 1 if more else None})

    async def add(self, request: web.Request) -> web.Response:
        self.require("alerts_write")
        told = await request.json()
        if missing := [item for item in NEEDED if not told.get(item)]:
            raise ErrorResponse(400, f"{{'{missing[0]}': ['Missing data for required field.']}}")
        if told["alert_severity_id"] not in SEVERITIES.values():
            raise ErrorResponse(400, "(psycopg2.errors.ForeignKeyViolation) insert or update")
        if told["alert_customer_id"] != CUSTOMERS[CUSTOMER]:
            raise ErrorResponse(400, "User not entitled to create alerts for the client")
        number = 40_000 + self.next_number()
        self.alerts[number] = {
            "alert_note": None,
            "alert_owner_id": None,
            "alert_source_ref": None,
            **told,
            "alert_id": number,
            "iocs": self._loaded(told.pop("alert_iocs", [])),
            "comments": [],
        }
        self._fail_late()
        return self.success(self._shown(self.alerts[number]))

    async def show(self, request: web.Request) -> web.Response:
        self.require("alerts_read")
        return self.success(self._shown(self._alert(request)))

    async def change(self, request: web.Request) -> web.Response:
        self.require("alerts_write")
        alert, told = self._alert(request), await request.json()
        if self.takes_iocs and "iocs" in told:
            alert["iocs"] = self._loaded(told["iocs"], alert["iocs"])
        alert |= {name: told[name] for name in CHANGEABLE if name in told}
        if alert["alert_owner_id"] is None:
            alert["alert_owner_id"] = ME
        elif alert["alert_owner_id"] == -1:
            alert["alert_owner_id"] = None
        self._fail_late()
        return self.success(self._shown(alert))

    async def comments(self, request: web.Request) -> web.Response:
        comments = self._alert(request, "Invalid alert ID")["comments"]
        return self.success([{"comment_text": comment} for comment in comments])

    async def comment(self, request: web.Request) -> web.Response:
        told = await request.json()
        self._alert(request, "Invalid alert ID")["comments"].append(told["comment_text"])
        return self.success({"comment_id": self.next_number()}, "Alert commented")

    def _alert(self, request: web.Request, otherwise: str = "Alert not found") -> dict[str, Any]:
        found = self.alerts.get(int(request.match_info["id"]))
        if found is None:
            raise ErrorResponse(400, otherwise)
        return found

    def _loaded(
        self, iocs: list[dict[str, Any]], there: Sequence[dict[str, Any]] = ()
    ) -> list[dict[str, Any]]:
        """Return the IOCs that replace the existing ones; IOCs with an ID change existing ones."""
        names, known = (
            {n: name for name, n in TYPES.items()},
            {record["ioc_id"]: record for record in there},
        )
        for ioc in iocs:
            if ioc["ioc_type_id"] not in names or ioc["ioc_tlp_id"] not in TLPS.values():
                raise ErrorResponse(400, "Invalid IOC type ID")
            pattern = self.patterns.get(names[ioc["ioc_type_id"]], ".*")
            if not re.fullmatch(pattern, ioc["ioc_value"], re.IGNORECASE | re.DOTALL):
                raise ErrorResponse(400, f"The input doesn't match the expected format ({pattern})")
        numbered = [{"ioc_id": self.next_number(), **ioc} for ioc in iocs]
        return [{**known.get(item["ioc_id"], {}), **item} for item in numbered]

    def _fail_late(self) -> None:
        if self.next_error:
            message, self.next_error = self.next_error, None
            raise ErrorResponse(400, message)

    def _shown(self, alert: dict[str, Any]) -> dict[str, Any]:
        names = {number: name for name, number in STATUSES.items()}
        shown = {name: value for name, value in alert.items() if name != "comments"}
        return shown | {"status": {"status_name": names[alert["alert_status_id"]]}}
