"""Request Tracker tickets: https://docs.bestpractical.com/rt/latest/RT/REST2.html."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import ClassVar
from urllib.parse import quote

from pydantic import Field

from tocsin import Health, Idempotency, Json, Misconfigured, Refused, RemoteStatus, Ticket
from tocsin_plugins.ticketing.http_tracker import (
    HttpTracker,
    expect_identifier,
    expect_object,
    expect_objects,
    expect_text,
    hash_key,
    optional_text,
    retry_on_conflict,
)
from tocsin_plugins.ticketing.markup import replace_unprintable
from tocsin_plugins.ticketing.request_tracker.fields import (
    FIELD_NAME,
    RESERVED,
    build_comment,
    changed_fields,
    custom_fields,
    own_fields,
    tickets_query,
)
from tocsin_plugins.ticketing.request_tracker.health import (
    API,
    check_dates,
    check_fields,
    check_key,
    find_problems,
)

_MOST = 100
_MOST_PAGES = 20
_MESSAGES = ("Comment", "Correspond")


class RequestTrackerOptions(HttpTracker.Options):
    """Options for Request Tracker."""

    key_field: str | None = Field(
        default=None,
        pattern=FIELD_NAME,
        max_length=200,
        description="Custom field that contains the key. Without it, the key is the last word of "
        "the subject.",
    )
    labels_field: str | None = Field(
        default=None,
        pattern=FIELD_NAME,
        max_length=200,
        description="Custom field that contains the `labels`. It must accept several values.",
    )
    requestor: str | None = Field(
        default=None, description="Requestor of new tickets, by email address or name."
    )
    closed_status: str = Field(
        default="resolved", description="Status that a ticket gets when Tocsin closes it."
    )
    inactive_statuses: tuple[str, ...] = Field(
        default=("resolved", "rejected"),
        description="Statuses of tickets that are no longer open.",
    )


class RequestTracker(HttpTracker):
    """Tickets in one queue, with the key in a custom field or at the end of the subject."""

    Options = RequestTrackerOptions
    receiver = "rt"
    reserved = RESERVED
    idempotency = Idempotency.SEARCH
    settling: ClassVar[timedelta | None] = timedelta(0)
    options: RequestTrackerOptions

    def authorization(self) -> Mapping[str, str]:
        """Return the token."""
        return {"Authorization": f"token {self.settings.secret.get_secret_value()}"}

    async def check(self) -> Health:
        """Report whether the token can create tickets in the queue and set all fields."""
        health = await find_problems(self, self._custom_fields(dict.fromkeys(self.settings.fields)))
        if not self.settings.labels or self.options.labels_field:
            return health
        problem = "labels: set options.labels_field to the custom field that contains them"
        return replace(health, problems=(*health.problems, problem))

    async def find(self, key: str) -> str | None:
        """Return the number of the first ticket with the key."""
        mark, field = hash_key(key), self.options.key_field
        wanted = {"query": tickets_query(mark, field), "fields": "Subject", "orderby": "id"}
        for found in expect_objects(await self.ask("GET", f"{API}/tickets", query=wanted), "items"):
            if field or mark in str(found.get("Subject")):
                return expect_identifier(found)
        return None

    async def create(self, ticket: Ticket) -> str:
        """Create a ticket."""
        mark = hash_key(ticket.key)
        subject, fields = str(ticket.body["Subject"]), self._custom_fields(ticket.fields, mark)
        if fields:
            await check_fields(self, fields)
        made: dict[str, Json] = {
            **ticket.body,
            "Queue": self.settings.project,
            "Subject": subject if self.options.key_field else f"{subject} [{mark}]",
            **own_fields(ticket),
            "CustomFields": fields,
        }
        if self.settings.assignee:
            made["Owner"] = self.settings.assignee
        if self.options.requestor:
            made["Requestor"] = self.options.requestor
        number = expect_identifier(
            await self.ask("POST", f"{API}/ticket", json=replace_unprintable(made))
        )
        if field := self.options.key_field:
            await check_key(self, number, field, mark)
        await check_dates(self, number, own_fields(ticket))
        return number

    async def list_notes(self, identifier: str) -> Sequence[str]:
        """Return the subjects of messages, the latest first; a comment's subject names its event.

        The history returns all subjects in one response, but each text needs another request.
        """
        path, subjects = f"{self._ticket(identifier)}/history", list[str]()
        for page in range(1, _MOST_PAGES + 1):
            query = {"fields": "Type,Data", "orderby": "id", "order": "DESC"}
            paging = {"per_page": _MOST, "page": page}
            shown = expect_object(await self.ask("GET", path, query=query | paging))
            items = expect_objects(shown, "items")
            subjects += [str(item.get("Data")) for item in items if item.get("Type") in _MESSAGES]
            if page >= (shown.get("pages") or 0):
                break
        return subjects

    async def add_note(self, identifier: str, text: str) -> None:
        """Comment on a ticket."""
        await self.ask("POST", f"{self._ticket(identifier)}/comment", json=build_comment(text))

    async def update(self, identifier: str, ticket: Ticket) -> None:
        """Set the priority and the operator's fields."""
        fields = custom_fields(ticket.fields)
        more = {"CustomFields": fields} if fields else {}
        own = own_fields(ticket)
        messages = await self._change(identifier, own | more)
        await check_dates(self, identifier, own, messages)

    async def read_status(self, identifier: str) -> RemoteStatus | None:
        """Return the status of a ticket."""
        try:
            ticket = expect_object(await self.ask("GET", self._ticket(identifier)))
        except Refused as refused:
            if refused.is_missing:
                return None
            raise
        closed = {self.options.closed_status, *self.options.inactive_statuses}
        status, version = expect_text(ticket, "Status"), optional_text(ticket.get("LastUpdated"))
        if status == "deleted":
            return None
        return RemoteStatus(status=status, is_open=status not in closed, version=version)

    async def list_closed_statuses(self) -> Sequence[str]:
        """Return the statuses that count as closed."""
        return sorted({self.options.closed_status, *self.options.inactive_statuses})

    async def close(self, identifier: str, reason: str) -> None:
        """Set the closed status of a ticket, then comment with the reason.

        RT returns 200 even if nothing changed, so read the status again.
        """
        messages = await self._change(identifier, {"Status": self.options.closed_status})
        now = expect_object(await self.ask("GET", self._ticket(identifier))).get("Status")
        if now != self.options.closed_status:
            raise Misconfigured(f"ticket {identifier} is still {now}: {messages}")
        await self.explain_closed(identifier, reason)

    async def explain_closed(self, identifier: str, reason: str) -> None:
        """Comment with the reason, unless a comment already gives it."""
        await self.comment_once(identifier, reason)

    def link(self, identifier: str) -> str:
        """Return the URL of a ticket's page."""
        return f"{self.settings.url}/Ticket/Display.html?id={quote(identifier, safe='')}"

    async def _change(self, identifier: str, changes: Mapping[str, Json]) -> str:
        """Change a ticket unless someone else changes it concurrently; return RT's response."""
        messages: Json = None

        async def change() -> None:
            nonlocal messages
            shown = await self.answer("GET", self._ticket(identifier))
            match = {"If-Match": tag} if (tag := shown.headers.get("ETag")) else {}
            if wanted := changed_fields(changes, expect_object(shown.json)):
                path, json = self._ticket(identifier), replace_unprintable(wanted)
                messages = await self.ask("PUT", path, json=json, headers=match)

        await retry_on_conflict(change)
        return "; ".join(map(str, messages)) if isinstance(messages, list) else ""

    def _custom_fields(self, fields: Mapping[str, Json], mark: str = "") -> dict[str, Json]:
        given = custom_fields(fields)
        if self.options.key_field:
            given[self.options.key_field] = mark
        if self.options.labels_field and self.settings.labels:
            given[self.options.labels_field] = list(self.settings.labels)
        return given

    @staticmethod
    def _ticket(identifier: str) -> str:
        return f"{API}/ticket/{quote(identifier, safe='')}"
