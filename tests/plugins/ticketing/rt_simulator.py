"""Simulator of Request Tracker's REST 2, as far as the tracker uses it, with its quirks."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

from aiohttp import web

from tocsin.testing import ErrorResponse, ReceiverSimulator, RemoteObject
from tocsin.testing.conformance import ADDRESSES

TOKEN = "1-14-a token of RT"
QUEUE = "SOC / incidents"
_MOST = 100
_DATE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_CONDITION = re.compile(
    r"(?P<key>'(?:[^'\\]|\\.)*'|\w+) (?P<op>=|LIKE) (?P<value>'(?:[^'\\]|\\.)*')"
)


class RTSimulator(ReceiverSimulator):
    permissions: ClassVar = ("CreateTicket", "SeeCustomField")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.tickets: dict[str, dict[str, Any]] = {}
        self.fields = {"1": "Tocsin", "2": "Labels", "3": "Source"}
        self.patterns = {"3": "(?#Mandatory)."}
        self.locked = False
        """Whether a ticket keeps its status, as it does where the right to change it is missing."""
        self.meanwhile = 0
        """How many changes by others come right before the next ones that are asked for."""

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/REST/2.0/queues", self.queues),
            web.get("/REST/2.0/queue/{name}", self.queue),
            web.get("/REST/2.0/customfield/{id}", self.customfield),
            web.get("/REST/2.0/tickets", self.search),
            web.post("/REST/2.0/ticket", self.create),
            web.get("/REST/2.0/ticket/{id}", self.show),
            web.put("/REST/2.0/ticket/{id}", self.change),
            web.get("/REST/2.0/ticket/{id}/history", self.history),
            web.post("/REST/2.0/ticket/{id}/comment", self.comment),
        ]

    def is_signed(self, request: web.Request) -> bool:
        return request.headers.get("Authorization") == f"token {TOKEN}"

    def objects(self) -> list[RemoteObject]:
        return [
            RemoteObject(
                id=number,
                observables=[address for address in ADDRESSES if address in ticket["Content"]],
                notes=[
                    entry["Content"] for entry in ticket["history"] if entry["Type"] == "Comment"
                ],
                is_open=ticket["Status"] == "new",
            )
            for number, ticket in self.tickets.items()
        ]

    def remove(self, identifier: str) -> None:
        """Remove a ticket as people can: what is deleted is still shown, but not found."""
        del self.tickets[identifier]

    async def queues(self, request: web.Request) -> web.Response:
        [condition] = json.loads(request.query["query"])
        items = [{"type": "queue", "id": "3"}] if condition["value"] == QUEUE else []
        return self.json({"count": len(items), "page": 1, "items": items})

    async def queue(self, request: web.Request) -> web.Response:
        """Show a queue by its ID; RT finds none with a slash in its name."""
        if request.match_info["name"] != "3":
            raise ErrorResponse(404, "Not Found")
        shown = [] if "SeeCustomField" in self.lacks else self.fields.items()
        links = [{"ref": "self", "type": "queue"}]
        if "CreateTicket" not in self.lacks:
            links.append({"ref": "create", "type": "ticket"})
        named = [{"id": number, "type": "customfield", "name": name} for number, name in shown]
        return self.json(
            {"id": 3, "Name": QUEUE, "TicketCustomFields": named, "_hyperlinks": links}
        )

    async def customfield(self, request: web.Request) -> web.Response:
        number = request.match_info["id"]
        return self.json({"id": int(number), "Pattern": self.patterns.get(number, "")})

    async def search(self, request: web.Request) -> web.Response:
        condition = _CONDITION.fullmatch(request.query["query"])
        assert condition, request.query["query"]
        key, value = _unquoted(condition["key"]), _unquoted(condition["value"])
        assert condition["op"] == ("LIKE" if key == "Subject" else "=")
        found = [ticket for ticket in self.tickets.values() if _holds(ticket, key, value)]
        items = [
            {"type": "ticket", "id": str(ticket["id"]), "Subject": ticket["Subject"]}
            for ticket in found
            if ticket["Status"] != "deleted"
        ]
        return self.json({"count": len(items), "page": 1, "pages": 1, "items": items})

    async def create(self, request: web.Request) -> web.Response:
        given = await request.json()
        if given.get("Queue") != QUEUE:
            raise ErrorResponse(400, "Unable to find queue")
        if "CreateTicket" in self.lacks:
            raise ErrorResponse(403, "No permission to create tickets in the queue")
        assert given["ContentType"] == "text/plain"
        assert isinstance(given["Priority"], int)
        number = self.next_number()
        known = given.pop("CustomFields", {})
        settable = () if "ModifyCustomField" in self.lacks else self.fields.values()
        fields = {name: value for name, value in known.items() if name in settable}
        first = {"Type": "Create", "Data": None, "id": self.next_number()}
        self.tickets[str(number)] = {
            **_read_dates(given),
            "Subject": given["Subject"].replace("\n", "")[:200],
            "id": number,
            "Status": "new",
            "CustomFields": fields,
            "history": [first],
        }
        return self.json({"type": "ticket", "id": str(number), "_url": "elsewhere"}, 201)

    async def show(self, request: web.Request) -> web.Response:
        ticket = self._ticket(request)
        shown = {
            name: value for name, value in ticket.items() if name not in ("history", "Content")
        }
        fields = [
            {"name": name, "values": value if isinstance(value, list) else [value]}
            for name, value in ticket["CustomFields"].items()
        ]
        response = self.json({**shown, "CustomFields": fields})
        response.headers["ETag"] = _etag(ticket)
        return response

    async def change(self, request: web.Request) -> web.Response:
        """Change a ticket; what is not allowed is answered 200 as well, with other words."""
        ticket, given = self._ticket(request), await request.json()
        if self.meanwhile:
            self.meanwhile -= 1
            self._note(ticket, "Set", "Owner")
        if request.headers.get("If-Match", _etag(ticket)) != _etag(ticket):
            raise ErrorResponse(412, "Precondition Failed")
        if self.locked:
            return self.json([f"Ticket {ticket['id']}: Permission Denied"])
        ticket["CustomFields"] |= given.pop("CustomFields", {})
        ticket |= _read_dates(given)
        self._note(ticket, "Set", "Status")
        return self.json([f"Ticket {ticket['id']}: {name} changed" for name in given])

    async def history(self, request: web.Request) -> web.Response:
        size, page = int(request.query["per_page"]), int(request.query["page"])
        assert size <= _MOST
        assert request.query["order"] == "DESC"
        known = self._ticket(request)["history"][::-1]
        items = [
            {"type": "transaction", "id": entry["id"], "Type": entry["Type"], "Data": entry["Data"]}
            for entry in known[size * (page - 1) : size * page]
        ]
        pages = -(-len(known) // size)
        return self.json({"count": len(items), "page": page, "pages": pages, "items": items})

    async def comment(self, request: web.Request) -> web.Response:
        ticket, given = self._ticket(request), await request.json()
        if not given.get("ContentType"):
            raise ErrorResponse(400, "ContentType is a required field for application/json")
        self._note(ticket, "Comment", given["Subject"], given["Content"])
        return self.json(["Comments added"], 201)

    def _note(self, ticket: dict[str, Any], kind: str, data: str, content: str = "") -> None:
        facts = {"Type": kind, "Data": data, "Content": content}
        ticket["history"].append({"id": self.next_number(), **facts})

    def _ticket(self, request: web.Request) -> dict[str, Any]:
        if (found := self.tickets.get(request.match_info["id"])) is None:
            raise ErrorResponse(404, "Not Found")
        return found


def _read_dates(given: dict[str, Any]) -> dict[str, Any]:
    """Read dates as RT does: in one form only; any other is the beginning of 1970."""
    dates = {name: given[name] for name in ("Due", "Starts") if name in given}
    shown = {
        name: f"{text.replace(' ', 'T')}Z" if _DATE.fullmatch(text) else "1970-01-01T00:00:00Z"
        for name, text in dates.items()
    }
    return {**given, **shown}


def _etag(ticket: dict[str, Any]) -> str:
    return f'"{ticket["history"][-1]["id"]}"'


def _unquoted(text: str) -> str:
    bare = text[1:-1] if text.startswith("'") else text
    return re.sub(r"\\(.)", r"\1", bare)


def _holds(ticket: dict[str, Any], key: str, value: str) -> bool:
    if key == "Subject":
        return value.lower() in ticket["Subject"].lower()
    return bool(ticket["CustomFields"].get(key.removeprefix("CF.{").removesuffix("}")) == value)
