"""Zendesk tickets: https://developer.zendesk.com/api-reference/ticketing/tickets/tickets/."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, ClassVar
from urllib.parse import quote

import orjson
from pydantic import Field

from tocsin import (
    Health,
    Idempotency,
    Json,
    Misconfigured,
    PushRequest,
    Refused,
    RemoteStatus,
    Ticket,
    TicketSettings,
    parse_webhook_body,
)
from tocsin_plugins.ticketing.http_tracker import (
    HttpTracker,
    expect_identifier,
    expect_object,
    expect_objects,
    expect_text,
    optional_text,
)
from tocsin_plugins.ticketing.markup import replace_unprintable, shorten_markdown
from tocsin_plugins.ticketing.webhooks import list_numbers, require_timed_signature

_AGENTS = ("agent", "admin")
_MOST_BYTES = 60_000
_API = "/api/v2"
_MOST = 100
_MOST_PAGES = 50  # a ticket has at most 5,000 comments
_CLOSED = "closed"


class ZendeskOptions(HttpTracker.Options):
    """Options for Zendesk."""

    requester: str | None = Field(
        default=None,
        description="Email address of the requester of new tickets. By default, this is the user "
        "whose credentials Tocsin uses.",
    )


class Zendesk(HttpTracker):
    """Tickets in one group, with the key as their external ID.

    External IDs are not unique, so Tocsin searches for a ticket before it creates one. Zendesk also
    remembers a request's idempotency key for two hours. A closed ticket can never change again, so
    later events create another ticket.
    """

    Options = ZendeskOptions
    receiver = "zendesk"
    reserved = frozenset(
        {"subject", "description", "comment", "external_id", "group_id", "status", "priority"}
        | {"tags", "type", "requester", "requester_id", "assignee_email", "assignee_id"}
        | {"custom_fields", "safe_update", "updated_stamp", "via_followup_source_id"}
    )
    idempotency = Idempotency.NATIVE
    accepts_webhooks: ClassVar[bool] = True
    options: ZendeskOptions

    def authorization(self) -> Mapping[str, str]:
        """Return the API token with the user's address; without a user, return the OAuth token."""
        secret, name = self.settings.secret.get_secret_value(), self.settings.username
        if name is None:
            return {"Authorization": f"Bearer {secret}"}
        basic = b64encode(f"{name}/token:{secret}".encode()).decode()
        return {"Authorization": f"Basic {basic}"}

    async def check(self) -> Health:
        """Report a missing group, a user who is not an agent, and missing fields."""
        user = expect_object(await self.ask("GET", f"{_API}/users/me.json"), "user")
        fields = [field async for field in self._listed("ticket_fields")]
        found = find_problems(self.settings, user, fields, await self._group())
        detail = f"{self.settings.project} accepts tickets"
        return Health(detail=detail, problems=tuple(found))

    async def find(self, key: str) -> str | None:
        """Return the ticket that has this external ID and is not closed."""
        found = [
            ticket for ticket in await self._find_by_key(key) if ticket.get("status") != _CLOSED
        ]
        return expect_identifier(found[0]) if found else None

    async def create(self, ticket: Ticket) -> str:
        """Create a ticket; if there is a closed ticket with the same key, create a follow-up."""
        wanted: dict[str, Json] = {
            **expect_object(dict(ticket.body), "ticket"),
            **self._changes(ticket),
            "external_id": ticket.key,
            "group_id": await self._group_or_raise(),
        }
        if self.settings.issue_type:
            wanted["type"] = self.settings.issue_type
        if self.settings.assignee:
            wanted["assignee_email"] = self.settings.assignee
        if self.options.requester:
            wanted["requester"] = {"email": self.options.requester, "name": self.options.requester}
        if self.settings.labels:
            wanted["tags"] = [*ticket.body["ticket"].get("tags", ()), *self.settings.labels]
        if closed := await self._find_by_key(ticket.key):
            wanted["via_followup_source_id"] = int(expect_identifier(closed[-1]))
        made, remembered = await self._post(wanted, ticket.key)
        if remembered and await self.is_open(made) is None:  # it was deleted
            made, _ = await self._post(wanted, f"{ticket.key} {made}")
        return made

    async def list_notes(self, identifier: str) -> Sequence[str]:
        """Return the comments except the first, which is the description."""
        path = f"tickets/{quote(identifier, safe='')}/comments"
        found = [comment async for comment in self._listed(path, "comments")]
        later = sorted(found, key=lambda it: int(expect_identifier(it)))[1:]
        return [f"{comment.get('body')}\n{comment.get('plain_body')}" for comment in later]

    async def add_note(self, identifier: str, text: str) -> None:
        """Add an internal note, unless someone changed the ticket after it was read."""
        await self._change(identifier, {"comment": build_note(text)})

    async def update(self, identifier: str, ticket: Ticket) -> None:
        """Set the priority and the operator's fields."""
        if changes := self._changes(ticket):
            await self._change(identifier, changes)

    async def read_status(self, identifier: str) -> RemoteStatus | None:
        """Return a ticket's status; a ticket is open unless it is solved or closed."""
        try:
            ticket = await self._ticket(identifier)
        except Refused as refused:
            if refused.is_missing:
                return None
            raise
        status = expect_text(ticket, "status")
        if status == "deleted":
            return None
        is_open, version = status not in ("solved", _CLOSED), ticket.get("updated_at")
        return RemoteStatus(status=status, is_open=is_open, version=optional_text(version))

    async def is_open(self, identifier: str) -> bool | None:
        """Return whether a ticket is not solved; None if it is closed and can no longer change."""
        found = await self.read_status(identifier)
        return None if found is None or found.status == _CLOSED else found.is_open

    async def list_closed_statuses(self) -> Sequence[str]:
        """Return the statuses solved and closed; Zendesk closes a solved ticket after some time."""
        return ("solved", _CLOSED)

    async def close(self, identifier: str, reason: str) -> None:
        """Solve a ticket, and add a note with the reason."""
        await self._change(identifier, {"status": "solved", "comment": build_note(reason)})

    @classmethod
    def parse_webhook(
        cls, settings: TicketSettings, request: PushRequest, now: datetime
    ) -> Sequence[str]:
        """Return the ticket that an event or the body of a trigger names.

        https://developer.zendesk.com/documentation/webhooks/verifying/
        """
        signature = "X-Zendesk-Webhook-Signature"
        require_timed_signature(settings, request, signature, f"{signature}-Timestamp", now)
        match parse_webhook_body(request):
            case {"detail": {"id": number}} | {"ticket": {"id": number}}:
                return list_numbers(number)
        return ()

    def link(self, identifier: str) -> str:
        """Return the URL of a ticket's page."""
        return f"{self.settings.url}/agent/tickets/{quote(identifier, safe='')}"

    async def _post(self, wanted: Mapping[str, Json], key: str) -> tuple[str, bool]:
        """Return the ticket, and whether an earlier request with the same key and body created it.

        Zendesk recognizes repeated requests for two hours.
        """
        body = {"ticket": escape_placeholders(dict(wanted))}
        once = {"Idempotency-Key": sha256(orjson.dumps([key, body])).hexdigest()}
        made = await self.answer("POST", f"{_API}/tickets.json", json=body, headers=once)
        remembered = made.headers.get("x-idempotency-lookup") == "hit"
        return expect_identifier(expect_object(made.json, "ticket")), remembered

    async def _change(self, identifier: str, changes: Mapping[str, Json]) -> None:
        """Change the values that differ; raises `TryLater` after a concurrent change."""
        now = await self._ticket(identifier)
        if differing := {
            name: value for name, value in changes.items() if not _has_value(now, name, value)
        }:
            safe = {**differing, "safe_update": True, "updated_stamp": now.get("updated_at")}
            await self.ask(
                "PUT", self._path(identifier), json={"ticket": escape_placeholders(safe)}
            )

    def _changes(self, ticket: Ticket) -> dict[str, Json]:
        """Return a ticket's values; operator fields with numeric names are custom fields."""
        custom = [
            {"id": int(name), "value": v} for name, v in ticket.fields.items() if name.isdigit()
        ]
        own = {name: value for name, value in ticket.fields.items() if not name.isdigit()}
        return {
            **({"priority": ticket.priority} if ticket.priority else {}),
            **own,
            **({"custom_fields": custom} if custom else {}),
        }

    async def _find_by_key(self, key: str) -> list[dict[str, Any]]:
        """Return the tickets with a key, the first one first."""
        answer = await self.ask("GET", f"{_API}/tickets.json", query={"external_id": key})
        found = [
            ticket
            for ticket in expect_objects(answer, "tickets")
            if ticket.get("external_id") == key
        ]
        return sorted(found, key=lambda it: int(expect_identifier(it)))

    async def _group_or_raise(self) -> int:
        if (found := await self._group()) is None:
            raise Misconfigured(f"project: the group {self.settings.project} does not exist")
        return found

    async def _group(self) -> int | None:
        """Return the group's ID; if `project` is a number, it is the ID."""
        name = self.settings.project
        if name.isdigit():
            return int(name)
        found = [group async for group in self._listed("groups") if group.get("name") == name]
        return int(expect_identifier(found[0])) if found else None

    async def _listed(self, path: str, name: str = "") -> AsyncIterator[dict[str, Any]]:
        for page in range(1, _MOST_PAGES + 1):
            query = {"per_page": _MOST, "page": page}
            answer = await self.ask("GET", f"{_API}/{path}.json", query=query)
            for found in expect_objects(answer, name or path):
                yield found
            if not expect_object(answer).get("next_page"):
                return

    async def _ticket(self, identifier: str) -> dict[str, Any]:
        return expect_object(await self.ask("GET", self._path(identifier)), "ticket")

    @staticmethod
    def _path(identifier: str) -> str:
        return f"{_API}/tickets/{quote(identifier, safe='')}.json"


def find_problems(
    settings: TicketSettings,
    user: Mapping[str, Any],
    fields: Iterable[dict[str, Any]],
    group: int | None,
) -> Iterator[str]:
    """Yield problems with creating or closing tickets in this group."""
    if user.get("role") not in _AGENTS:
        yield f"{user.get('email') or 'the anonymous user'} is not an agent"
    if group is None:
        yield f"project: the group {settings.project} does not exist"
    known = {expect_identifier(field): field for field in fields if field.get("active", True)}
    for name in settings.fields:
        if name.isdigit() and name not in known:
            yield f"fields.{name}: this field does not exist in Zendesk"
    if settings.close_when is not None or settings.close_recovered:
        for number, field in known.items():
            if _is_required_field(field) and number not in settings.fields:
                title = field.get("title")
                yield f"the field {title} is required to solve tickets: set fields.{number}"


def _is_required_field(field: Mapping[str, Any]) -> bool:
    """Return whether a custom field is required."""
    return bool(field.get("required") and field.get("removable"))


def build_note(markdown: str) -> dict[str, Json]:
    """Return an internal comment, shortened if it is too long."""
    return {"body": shorten_markdown(markdown, _fits_in_body), "public": False}


def escape_placeholders(value: Json) -> Json:
    """Return a value that Zendesk can store, without placeholders that it would replace."""
    match replace_unprintable(value):
        case str(text):
            return text.replace("{{", "{ {").replace("{%", "{ %")
        case list(items):
            return [escape_placeholders(item) for item in items]
        case dict(members):
            return {name: escape_placeholders(value) for name, value in members.items()}
    return value


def _fits_in_body(text: str) -> bool:
    return len(text.encode(errors="replace")) <= _MOST_BYTES


def _has_value(ticket: Mapping[str, Any], name: str, value: Json) -> bool:
    """Return whether a ticket already has this value; of custom fields, all must match."""
    now = ticket.get(name)
    if name == "custom_fields" and isinstance(value, list):
        return all(item in (now or ()) for item in value)
    return bool(now == value)
