"""Zendesk tickets: https://developer.zendesk.com/api-reference/ticketing/tickets/tickets/."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import quote

import orjson
from pydantic import Field

from tocsin import Health, Idempotency, Json, Misconfigured, Refused, Ticket, TicketSettings
from tocsin_plugins.ticketing.http_tracker import (
    HttpTracker,
    expect_identifier,
    expect_object,
    expect_objects,
)
from tocsin_plugins.ticketing.markup import replace_unprintable, shorten_markdown

_AGENTS = ("agent", "admin")


def find_problems(
    settings: TicketSettings,
    user: Mapping[str, Any],
    fields: Iterable[dict[str, Any]],
    group: int | None,
) -> Iterator[str]:
    """Yield what keeps this user from making tickets of this group, or from closing them."""
    if user.get("role") not in _AGENTS:
        yield f"{user.get('email') or 'nobody'} is no agent, and only an agent can do this"
    if group is None:
        yield f"project: there is no group {settings.project}"
    known = {expect_identifier(field_): field_ for field_ in fields if field_.get("active", True)}
    for name in settings.fields:
        if name.isdigit() and name not in known:
            yield f"fields.{name}: there is no such field"
    if settings.close_when is not None or settings.close_recovered:
        for number, field in known.items():
            if _is_required_field(field) and number not in settings.fields:
                yield f"the field {field.get('title')} is required to solve: give fields.{number}"


def _is_required_field(field: Mapping[str, Any]) -> bool:
    """Return whether a field has to be filled in that is none of Zendesk's own."""
    return bool(field.get("required") and field.get("removable"))


_MOST_BYTES = 60_000


def build_note(markdown: str) -> dict[str, Json]:
    """Return an internal comment, shortened where it is too long."""
    return {"body": shorten_markdown(markdown, _fits_in_body), "public": False}


def escape_placeholders(value: Json) -> Json:
    """Return what can be stored, without any text that Zendesk puts something else in place of."""
    match replace_unprintable(value):
        case str(text):
            return text.replace("{{", "{ {").replace("{%", "{ %")
        case list(items):
            return [escape_placeholders(item) for item in items]
        case dict(members):
            return {name: escape_placeholders(it) for name, it in members.items()}
    return value


def _fits_in_body(text: str) -> bool:
    return len(text.encode(errors="replace")) <= _MOST_BYTES


_API = "/api/v2"
_MOST = 100
_MOST_PAGES = 50  # a ticket has 5,000 comments at most
_CLOSED = "closed"


class Zendesk(HttpTracker):
    """Tickets of one group, with the key as their external id.

    That need not be unique, so it is looked for; and a request's own key is remembered for two
    hours. A closed ticket can never be changed again: what comes later makes its follow-up.
    """

    class Options(HttpTracker.Options):
        """What only Zendesk can be told."""

        requester: str | None = Field(
            default=None,
            description="Whom new tickets come from, by e-mail address; by default whoever signs "
            "in.",
        )

    receiver = "zendesk"
    reserved = frozenset(
        {"subject", "description", "comment", "external_id", "group_id", "status", "priority"}
        | {"tags", "type", "requester", "requester_id", "assignee_email", "assignee_id"}
        | {"custom_fields", "safe_update", "updated_stamp", "via_followup_source_id"}
    )
    idempotency = Idempotency.NATIVE
    options: Options

    def authorization(self) -> Mapping[str, str]:
        """Return the API token with the address of its user, or without one a token of OAuth."""
        secret, name = self.settings.secret.get_secret_value(), self.settings.username
        if name is None:
            return {"Authorization": f"Bearer {secret}"}
        basic = b64encode(f"{name}/token:{secret}".encode()).decode()
        return {"Authorization": f"Basic {basic}"}

    async def check(self) -> Health:
        """Return whether there is the group, whether an agent asks, and what is missing."""
        user = expect_object(await self.ask("GET", f"{_API}/users/me.json"), "user")
        fields = [it async for it in self._listed("ticket_fields")]
        found = find_problems(self.settings, user, fields, await self._group())
        detail = f"Zendesk answers, and {self.settings.project} takes tickets"
        return Health(detail=detail, problems=tuple(found))

    async def find(self, key: str) -> str | None:
        """Return the ticket that has this external id and is not closed."""
        found = [it for it in await self._of(key) if it.get("status") != _CLOSED]
        return expect_identifier(found[0]) if found else None

    async def create(self, ticket: Ticket) -> str:
        """Make a ticket; where what it is about has a closed one, as its follow-up."""
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
        if closed := await self._of(ticket.key):
            wanted["via_followup_source_id"] = int(expect_identifier(closed[-1]))
        made, remembered = await self._post(wanted, ticket.key)
        if remembered and await self.is_open(made) is None:  # somebody has deleted it
            made, _ = await self._post(wanted, f"{ticket.key} {made}")
        return made

    async def comments(self, identifier: str) -> Sequence[str]:
        """Return the comments but for the first, which is the description."""
        path = f"tickets/{quote(identifier, safe='')}/comments"
        found = [it async for it in self._listed(path, "comments")]
        later = sorted(found, key=lambda it: int(expect_identifier(it)))[1:]
        return [f"{it.get('body')}\n{it.get('plain_body')}" for it in later]

    async def comment(self, identifier: str, text: str) -> None:
        """Add an internal note to a ticket that nobody else has changed since it was read."""
        await self._change(identifier, {"comment": build_note(text)})

    async def update(self, identifier: str, ticket: Ticket) -> None:
        """Set priority and the operator's fields."""
        if changes := self._changes(ticket):
            await self._change(identifier, changes)

    async def is_open(self, identifier: str) -> bool | None:
        """Return whether a ticket is to be worked on; one that is closed for ever is none."""
        try:
            status = (await self._ticket(identifier)).get("status")
        except Refused as refused:
            if refused.is_missing:
                return None
            raise
        return None if status in (_CLOSED, "deleted") else status != "solved"

    async def close(self, identifier: str, reason: str) -> None:
        """Solve a ticket, with a note that says why."""
        await self._change(identifier, {"status": "solved", "comment": build_note(reason)})

    def link(self, identifier: str) -> str:
        """Return the page of a ticket."""
        return f"{self.settings.url}/agent/tickets/{quote(identifier, safe='')}"

    async def _post(self, wanted: Mapping[str, Json], key: str) -> tuple[str, bool]:
        """Return the ticket, and whether it was made before by a request of the same key and body.

        For two hours Zendesk makes none twice.
        """
        body = {"ticket": escape_placeholders(dict(wanted))}
        once = {"Idempotency-Key": sha256(orjson.dumps([key, body])).hexdigest()}
        made = await self.answer("POST", f"{_API}/tickets.json", json=body, headers=once)
        remembered = made.headers.get("x-idempotency-lookup") == "hit"
        return expect_identifier(expect_object(made.json, "ticket")), remembered

    async def _change(self, identifier: str, changes: Mapping[str, Json]) -> None:
        """Change what differs, unless the ticket changes meanwhile, which raises `TryLater`."""
        now = await self._ticket(identifier)
        if differing := {name: it for name, it in changes.items() if not _has_value(now, name, it)}:
            safe = {**differing, "safe_update": True, "updated_stamp": now.get("updated_at")}
            await self.ask(
                "PUT", self._path(identifier), json={"ticket": escape_placeholders(safe)}
            )

    def _changes(self, ticket: Ticket) -> dict[str, Json]:
        """Return what a ticket is to have; the operator's fields with numbers are custom ones."""
        custom = [{"id": int(it), "value": v} for it, v in ticket.fields.items() if it.isdigit()]
        own = {it: value for it, value in ticket.fields.items() if not it.isdigit()}
        return {
            **({"priority": ticket.priority} if ticket.priority else {}),
            **own,
            **({"custom_fields": custom} if custom else {}),
        }

    async def _of(self, key: str) -> list[dict[str, Any]]:
        """Return the tickets of a key, the first one first."""
        answer = await self.ask("GET", f"{_API}/tickets.json", query={"external_id": key})
        found = [
            object_
            for object_ in expect_objects(answer, "tickets")
            if object_.get("external_id") == key
        ]
        return sorted(found, key=lambda it: int(expect_identifier(it)))

    async def _group_or_raise(self) -> int:
        if (found := await self._group()) is None:
            raise Misconfigured(f"project: there is no group {self.settings.project}")
        return found

    async def _group(self) -> int | None:
        """Return the number of the group; a project that is a number is one."""
        name = self.settings.project
        if name.isdigit():
            return int(name)
        found = [it async for it in self._listed("groups") if it.get("name") == name]
        return int(expect_identifier(found[0])) if found else None

    async def _listed(self, path: str, name: str = "") -> AsyncIterator[dict[str, Any]]:
        for page in range(1, _MOST_PAGES + 1):
            query = {"per_page": _MOST, "page": page}
            answer = await self.ask("GET", f"{_API}/{path}.json", query=query)
            for object_ in expect_objects(answer, name or path):
                yield object_
            if not expect_object(answer).get("next_page"):
                return

    async def _ticket(self, identifier: str) -> dict[str, Any]:
        return expect_object(await self.ask("GET", self._path(identifier)), "ticket")

    @staticmethod
    def _path(identifier: str) -> str:
        return f"{_API}/tickets/{quote(identifier, safe='')}.json"


def _has_value(ticket: Mapping[str, Any], name: str, value: Json) -> bool:
    """Return whether a ticket has this value already; of fields, whether it has each."""
    now = ticket.get(name)
    if name == "custom_fields" and isinstance(value, list):
        return all(it in (now or ()) for it in value)
    return bool(now == value)
