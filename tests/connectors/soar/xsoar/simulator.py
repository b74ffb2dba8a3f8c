"""Simulator of Cortex XSOAR: the part of its API that the channel uses, with its quirks.

Search results are delayed, stale versions are refused, IDs are numeric strings, and the War Room
exists only after an investigation was opened. Version 8 has a path prefix; `V6` is version 6.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, ClassVar

from aiohttp import web

from tocsin.testing import ErrorResponse, ReceiverSimulator, RemoteObject

KEY = "a key of XSOAR"
KEY_ID = "an id of a key"
TYPES = ("Unclassified", "Phishing")
REASONS = ("False Positive", "Resolved", "Duplicate", "Other")
CLOSED = 2
HEADING = "**Tocsin: entities**"
LISTED = re.compile(r"^[\w -]+: (.*)$", re.MULTILINE)
OWN_LABELS = ("tocsin", "tocsin_event", "tocsin_key", "Brand", "Instance")
PHRASE = r'"((?:[^"\\]|\\.)*)"'
QUERY = re.compile(rf"dbotMirrorId:{PHRASE} or {PHRASE}", re.DOTALL)


class XsoarSimulator(ReceiverSimulator):
    permissions: ClassVar = ("Data with View", "Data with View/Edit")
    search_delay: ClassVar = timedelta(seconds=30)
    prefix: ClassVar = "/xsoar/public/v1"
    key_id: ClassVar[str | None] = KEY_ID

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.incidents: dict[str, dict[str, Any]] = {}
        self.keeps_mirror_id = True
        self.shows_types = True
        self.drops = False
        """Whether a pre-process rule drops new incidents."""
        self.busy = 0
        """How often a playbook changes an incident just after it was read."""

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post(f"{self.prefix}/incidents/search", self.search),
            web.post(f"{self.prefix}/incident", self.create),
            web.get(f"{self.prefix}/incident/load/{{id}}", self.load),
            web.post(f"{self.prefix}/incident/investigate", self.investigate),
            web.post(f"{self.prefix}/incident/close", self.close),
            web.post(f"{self.prefix}/investigation/{{id}}", self.war_room),
            web.post(f"{self.prefix}/entry/formatted", self.write),
            web.get(f"{self.prefix}/incidenttype", self.types),
        ]

    def is_signed(self, request: web.Request) -> bool:
        shown = request.headers.get("Authorization"), request.headers.get("x-xdr-auth-id")
        return shown == (KEY, self.key_id)

    def objects(self) -> list[RemoteObject]:
        return [
            RemoteObject(
                id=incident["id"],
                observables=[
                    *(
                        label["value"]
                        for label in incident["labels"]
                        if label["type"] not in OWN_LABELS
                    ),
                    *(
                        one
                        for text in incident["entries"]
                        if HEADING in text
                        for one in listed(text)
                    ),
                ],
                notes=[text for text in incident["entries"] if HEADING not in text],
                is_open=incident["status"] < CLOSED,
            )
            for incident in self.incidents.values()
        ]

    def remove(self, identifier: str) -> None:
        del self.incidents[identifier]

    def require(self, permission: str) -> None:
        if permission in self.lacks:
            raise ErrorResponse(403, "Forbidden")

    async def search(self, request: web.Request) -> web.Response:
        self.require("Data with View")
        asked = (await request.json())["filter"]
        found = [
            incident
            for incident in self.incidents.values()
            if self.is_searchable(incident["made_at"])
        ]
        if query := asked.get("query"):
            found = [item for item in found if matches(item, query)]
        shown = [shown_of(value) | {"version": -1} for value in found[: asked.get("size", 0)]]
        return self.json({"total": len(found), "data": shown})

    async def create(self, request: web.Request) -> web.Response:
        self.require("Data with View/Edit")
        told = await request.json()
        if self.drops:
            return web.Response(status=200)
        if not told.get("name") or "id" in told:
            raise ErrorResponse(400, "Could not create incident")
        identifier = str(self.next_number())
        begun = told.pop("createInvestigation", False)
        made = {
            "dbotMirrorId": "",
            **told,
            "id": identifier,
            "version": 1,
            "status": int(begun),
            "labels": [*told.get("labels", ()), {"type": "Brand", "value": "Manual"}],
            "investigationId": identifier if begun else "",
            "entries": [],
            "made_at": self.clock.now(),
        }
        if not self.keeps_mirror_id:
            made["dbotMirrorId"] = ""
        self.incidents[identifier] = made
        return self.json(shown_of(made), 201)

    async def load(self, request: web.Request) -> web.Response:
        incident = self._incident(request.match_info["id"])
        answer = self.json(shown_of(incident))
        if self.busy:
            self.busy -= 1
            incident["version"] += 1
        return answer

    async def investigate(self, request: web.Request) -> web.Response:
        self.require("Change the incident status")
        incident = self._incident((await request.json())["id"])
        incident |= {"investigationId": incident["id"], "status": 1}
        incident["version"] += 1
        return self.json({"id": incident["id"]})

    async def close(self, request: web.Request) -> web.Response:
        self.require("Change the incident status")
        told = await request.json()
        incident = self._incident(told["id"])
        if told["version"] != incident["version"]:
            raise ErrorResponse(400, "errOptimisticLock: object has been modified")
        if told["closeReason"] not in REASONS:
            raise ErrorResponse(400, "there is no such reason")
        incident |= {
            "status": CLOSED,
            **{name: told[name] for name in ("closeReason", "closeNotes")},
        }
        incident["version"] += 1
        return self.json(shown_of(incident))

    async def war_room(self, request: web.Request) -> web.Response:
        incident = self._investigated(request.match_info["id"])
        entries = [{"id": f"{n}@", "contents": item} for n, item in enumerate(incident["entries"])]
        return self.json({"id": incident["id"], "entries": entries or None})

    async def write(self, request: web.Request) -> web.Response:
        self.require("Data with View/Edit")
        told = await request.json()
        incident = self._investigated(told["investigationId"])
        incident["entries"].append(told["contents"])
        incident["version"] += 1
        return self.json({"id": f"1@{incident['id']}"})

    async def types(self, request: web.Request) -> web.Response:
        if not self.shows_types:
            raise ErrorResponse(404, "not for the public")
        return self.json([{"id": type_.lower(), "name": type_} for type_ in TYPES])

    def _incident(self, identifier: str) -> dict[str, Any]:
        if identifier not in self.incidents:
            raise ErrorResponse(400, "Item not found (8)")
        return self.incidents[identifier]

    def _investigated(self, identifier: str) -> dict[str, Any]:
        if not self.incidents.get(identifier, {}).get("investigationId"):
            raise ErrorResponse(400, "Could not find investigation")
        return self.incidents[identifier]


class V6(XsoarSimulator):
    prefix: ClassVar = ""
    key_id: ClassVar = None


def listed(text: str) -> list[str]:
    return LISTED.findall(text.partition("```")[2])


def matches(incident: dict[str, Any], query: str) -> bool:
    """Parse a query as Lucene does; a phrase without a field can match any field."""
    if not (phrases := QUERY.fullmatch(query)):
        raise ErrorResponse(400, f"what is {query}?")
    field, anywhere = (re.sub(r"\\(.)", r"\1", group) for group in phrases.groups())
    texts = [incident["dbotMirrorId"], *(label["value"] for label in incident["labels"])]
    return incident["dbotMirrorId"] == field or any(anywhere in text for text in texts)


def shown_of(incident: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in incident.items() if name not in ("entries", "made_at")}
