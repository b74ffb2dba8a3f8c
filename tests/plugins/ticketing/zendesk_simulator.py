"""Simulator of Zendesk's Ticketing API, as far as the tracker uses it, with its quirks."""

from __future__ import annotations

from base64 import b64encode
from datetime import timedelta
from typing import Any, ClassVar

import orjson
from aiohttp import web

from tocsin.testing import ErrorResponse, ReceiverSimulator, RemoteObject
from tocsin.testing.conformance import ADDRESSES

TOKEN = "a token of Zendesk"
USER = "tocsin@example.com"
GROUP = "Security"
_BASIC = b64encode(f"{USER}/token:{TOKEN}".encode()).decode()
_REMEMBERED = timedelta(hours=2)
_LONGEST = 65_535
_PAGE = 2  # of groups and fields, so that there are several pages


class ZendeskSimulator(ReceiverSimulator):
    search_delay = timedelta(seconds=30)
    permissions: ClassVar = ("agent",)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.tickets: dict[str, dict[str, Any]] = {}
        self.remembered: dict[str, tuple[Any, Any, str]] = {}
        self.meanwhile = 0
        """How many changes by others come right before the next ones that are asked for."""

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/v2/users/me.json", self.me),
            web.get("/api/v2/groups.json", self.groups),
            web.get("/api/v2/ticket_fields.json", self.fields),
            web.get("/api/v2/tickets.json", self.listed),
            web.post("/api/v2/tickets.json", self.create),
            web.get("/api/v2/tickets/{id}.json", self.show),
            web.put("/api/v2/tickets/{id}.json", self.change),
            web.get("/api/v2/tickets/{id}/comments.json", self.comments),
        ]

    def is_signed(self, request: web.Request) -> bool:
        shown = request.headers.get("Authorization")
        return shown in (f"Basic {_BASIC}", f"Bearer {TOKEN}")

    def objects(self) -> list[RemoteObject]:
        return [
            RemoteObject(
                id=number,
                observables=[
                    address for address in ADDRESSES if address in ticket["comments"][0]["body"]
                ],
                notes=[comment["body"] for comment in ticket["comments"][1:]],
                is_open=ticket["status"] not in ("solved", "closed"),
            )
            for number, ticket in self.tickets.items()
        ]

    def remove(self, identifier: str) -> None:
        del self.tickets[identifier]

    async def me(self, request: web.Request) -> web.Response:
        role = "end-user" if self.lacks else "agent"
        return self.json({"user": {"id": 1, "email": USER, "role": role}})

    async def groups(self, request: web.Request) -> web.Response:
        names = ["Billing", "Support", GROUP, f"{GROUP} 2"]
        found = [{"id": 10 + place, "name": name} for place, name in enumerate(names)]
        return self._page(request, "groups", found, _PAGE)

    async def fields(self, request: web.Request) -> web.Response:
        found = [
            {"id": 1, "title": "Subject", "required": True, "removable": False},
            {"id": 360, "title": "Source", "required": True, "removable": True},
            {"id": 361, "title": "Old", "required": True, "removable": True, "active": False},
        ]
        return self._page(request, "ticket_fields", found, _PAGE)

    async def listed(self, request: web.Request) -> web.Response:
        """Show the tickets of an external id; the latest ones are missing for a while."""
        found = [
            self._shown(ticket)
            for ticket in self.tickets.values()
            if ticket["external_id"] == request.query["external_id"]
            and self.is_searchable(ticket["made_at"])
        ]
        return self.json({"tickets": found, "next_page": None})

    async def create(self, request: web.Request) -> web.Response:
        given, key = await request.json(), request.headers["Idempotency-Key"]
        at, body, made = self.remembered.get(key, (None, None, ""))
        if at is not None and self.clock.now() - at < _REMEMBERED:
            if body != given:
                raise ErrorResponse(400, "Request parameters don't match the given idempotency key")
            response = self.json({"ticket": {"id": int(made)}}, 201)
            response.headers["x-idempotency-lookup"] = "hit"
            return response
        ticket = dict(given["ticket"])
        self._accept(ticket)
        if "via_followup_source_id" in ticket:
            source = self.tickets[str(ticket["via_followup_source_id"])]
            assert source["status"] == "closed", "it has no effect with other tickets"
        number = str(self.next_number())
        comment = {"id": self.next_number(), **ticket.pop("comment")}
        made_at = self.clock.now()
        facts = {"id": int(number), "status": "new", "comments": [comment], "made_at": made_at}
        self.tickets[number] = {"custom_fields": [], **ticket, **facts}
        self._touch(self.tickets[number])
        self.remembered[key] = (made_at, given, number)
        response = self.json({"ticket": self._shown(self.tickets[number])}, 201)
        response.headers["x-idempotency-lookup"] = "miss"
        return response

    async def show(self, request: web.Request) -> web.Response:
        return self.json({"ticket": self._shown(self._ticket(request))})

    async def change(self, request: web.Request) -> web.Response:
        ticket, given = self._ticket(request), (await request.json())["ticket"]
        if self.meanwhile:
            self.meanwhile -= 1
            self._touch(ticket)
        if ticket["status"] == "closed":
            raise ErrorResponse(422, "Status: closed prevents ticket update")
        assert given.pop("safe_update"), "else the change of another is overwritten"
        if given.pop("updated_stamp") != ticket["updated_at"]:
            raise ErrorResponse(409, "UpdateConflict")
        self._accept(given)
        if comment := given.pop("comment", None):
            assert comment["public"] is False, "the requester would get it by e-mail"
            ticket["comments"].append({"id": self.next_number(), **comment})
        ticket |= given
        self._touch(ticket)
        return self.json({"ticket": self._shown(ticket)})

    async def comments(self, request: web.Request) -> web.Response:
        size = int(request.query["per_page"])
        found = [
            {**comment, "plain_body": comment["body"]}
            for comment in self._ticket(request)["comments"]
        ]
        return self._page(request, "comments", found, size)

    def _page(
        self, request: web.Request, name: str, found: list[dict[str, Any]], size: int
    ) -> web.Response:
        page = int(request.query["page"])
        more = f"{self.url}{request.path}?page={page + 1}" if size * page < len(found) else None
        return self.json({name: found[size * (page - 1) : size * page], "next_page": more})

    def _ticket(self, request: web.Request) -> dict[str, Any]:
        if (found := self.tickets.get(request.match_info["id"])) is None:
            raise ErrorResponse(404, "RecordNotFound")
        return found

    def _touch(self, ticket: dict[str, Any]) -> None:
        """Note a change; as a count, since the clock of a test stands still."""
        ticket["updated_at"] = f"change {self.next_number()}"

    @staticmethod
    def _accept(ticket: dict[str, Any]) -> None:
        said = orjson.dumps(ticket).decode()
        assert "{{" not in said, "a placeholder, which Zendesk puts something else in place of"
        if len(ticket.get("comment", {}).get("body", "").encode()) > _LONGEST:
            raise ErrorResponse(422, "Body: is too long")
        if ticket.get("group_id", 12) != 12 or ticket.get("priority") not in (
            None,
            "low",
            "normal",
            "high",
            "urgent",
        ):
            raise ErrorResponse(422, "RecordInvalid")

    @staticmethod
    def _shown(ticket: dict[str, Any]) -> dict[str, Any]:
        return {
            name: value for name, value in ticket.items() if name not in ("comments", "made_at")
        }
