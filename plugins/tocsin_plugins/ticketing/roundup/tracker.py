"""Roundup issues: https://www.roundup-tracker.org/docs/rest.html."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from pydantic import Field

from tocsin import (
    Broken,
    Health,
    Idempotency,
    Json,
    Misconfigured,
    RemoteStatus,
    Ticket,
    TryLater,
)
from tocsin_plugins.ticketing.http_tracker import (
    HttpTracker,
    expect_identifier,
    expect_object,
    expect_objects,
    retry_on_conflict,
)
from tocsin_plugins.ticketing.markup import render_comment, replace_unprintable
from tocsin_plugins.ticketing.roundup.messages import (
    API,
    description_message_id,
    expect_found,
    find_messages,
    message_texts,
    note_message_id,
    write_message,
)
from tocsin_plugins.ticketing.roundup.permissions import find_problems

_LINK = re.compile(r"/@poe/[\w-]+$", re.ASCII)


class RoundupOptions(HttpTracker.Options):
    """Options for Roundup."""

    origin: str | None = Field(
        default=None,
        pattern=r"^https?://[^/\s]+$",
        description="The tracker's origin, if it differs from `url`: the value of `web` in the "
        "tracker's `config.ini`, without a path.",
    )
    set_priority: bool = Field(
        default=True,
        description="Whether Tocsin sets the priority. Use `false` if issues do not have a "
        "priority.",
    )
    closed_status: str = Field(
        default="resolved", description="Status that an issue gets when Tocsin closes it."
    )
    inactive_statuses: tuple[str, ...] = Field(
        default=("resolved", "done-cbb"),
        description="Statuses of issues that are no longer open.",
    )


class Roundup(HttpTracker):
    """Issues in one class; the Message-ID of each issue's first message is the key.

    Roundup searches the database for this Message-ID, so it finds new issues immediately.
    """

    Options = RoundupOptions
    receiver = "roundup"
    reserved = frozenset({"title", "messages", "status", "priority", "keyword", "assignedto"})
    idempotency = Idempotency.SEARCH
    settling: ClassVar[timedelta | None] = timedelta(0)
    conflicts: ClassVar[Collection[int]] = (HTTPStatus.PRECONDITION_FAILED,)
    options: RoundupOptions

    def authorization(self) -> Mapping[str, str]:
        """Return the user name and password, and the headers for Roundup's CSRF protection."""
        if self.settings.username is None:
            raise Misconfigured("username: set the user name that the password belongs to")
        pair = f"{self.settings.username}:{self.settings.secret.get_secret_value()}"
        parts = urlsplit(self.settings.url)
        return {
            "Authorization": f"Basic {b64encode(pair.encode()).decode()}",
            "Origin": self.options.origin or f"{parts.scheme}://{parts.netloc}",
            "X-Requested-With": "rest",
        }

    async def check(self) -> Health:
        """Report what is missing for creating issues."""
        return await find_problems(self, self.options.closed_status)

    async def find(self, key: str) -> str | None:
        """Return the issue whose first message has the key's Message-ID."""
        messages = await find_messages(self, description_message_id(key))
        if not messages:
            return None
        issues = await expect_found(self, self.settings.project, {"messages": ",".join(messages)})
        return expect_identifier(issues[0]) if issues else None

    async def create(self, ticket: Ticket) -> str:
        """Create an issue through a single-use link."""
        text = str(ticket.body["content"])
        issue: dict[str, Json] = {
            "title": ticket.body["title"],
            **self._changes(ticket),
            "messages": [await write_message(self, description_message_id(ticket.key), text)],
        }
        if self.settings.labels:
            issue["keyword"] = list(self.settings.labels)
        if self.settings.assignee:
            issue["assignedto"] = self.settings.assignee
        given = expect_object(await self.ask("POST", f"{self._class}/@poe", json={}), "data").get(
            "link"
        )
        if (link := _LINK.search(str(given))) is None:
            raise Broken("Roundup's response lacks the single-use link")
        try:
            made = await self.ask(
                "POST", f"{self._class}{link[0]}", json=replace_unprintable(issue)
            )
        except Misconfigured as refused:
            if b"POE token" not in refused.response:
                raise
            return await self._made_by_link(ticket.key)
        return expect_identifier(expect_object(made, "data"))

    async def list_notes(self, identifier: str) -> Sequence[str]:
        """Return the latest messages except the first, which is the description."""
        return await message_texts(self, _message_ids(await self._issue(identifier)))

    async def add_note(self, identifier: str, text: str) -> None:
        """Add a message to an issue."""
        await self._change(identifier, {}, render_comment(text))

    async def update(self, identifier: str, ticket: Ticket) -> None:
        """Set the priority and the operator's fields."""
        await self._change(identifier, self._changes(ticket))

    async def read_status(self, identifier: str) -> RemoteStatus | None:
        """Return an issue's status, with a search, which does not find retired issues."""
        query = {"id": identifier, "@fields": "status", "@verbose": 2}
        issues = await expect_found(self, self.settings.project, query)
        if not issues:
            return None
        status = _name(issues[0].get("status"))
        return RemoteStatus(status=str(status), is_open=status not in self._inactive)

    async def list_closed_statuses(self) -> Sequence[str]:
        """Return the statuses that count as closed."""
        return sorted(self._inactive)

    async def close(self, identifier: str, reason: str) -> None:
        """Set the closed status, and add a message with the reason."""
        await self._change(identifier, {"status": self.options.closed_status}, reason)

    def link(self, identifier: str) -> str:
        """Return the URL of an issue's page."""
        return f"{self.settings.url}/{quote(self.settings.project)}{quote(identifier, safe='')}"

    async def _change(
        self, identifier: str, changes: Mapping[str, Json], message: str | None = None
    ) -> None:
        """Change an issue's properties and add a message, unless someone else changes the issue
        concurrently.

        Every change with a message also sets the status, because Roundup would otherwise reopen
        resolved issues.
        """

        async def change() -> None:
            issue = await self._issue(identifier)
            now = expect_object(issue, "attributes")
            wanted = {
                name: value for name, value in changes.items() if _name(now.get(name)) != value
            }
            if message is not None:
                new = await write_message(self, note_message_id(message, identifier), message)
                wanted["messages"] = [*_message_ids(issue), new]
                wanted.setdefault("status", _name(now.get("status")))
            if wanted:
                match = {"If-Match": str(issue.get("@etag"))}
                path = f"{self._class}/{quote(identifier, safe='')}"
                await self.ask("PATCH", path, json=replace_unprintable(wanted), headers=match)

        await retry_on_conflict(change)

    async def _made_by_link(self, key: str) -> str:
        """Return the issue that was created with a single-use link that is already used."""
        if (made := await self.find(key)) is None:
            raise TryLater("the single-use link was already used, but the issue does not exist yet")
        return made

    async def _issue(self, identifier: str) -> dict[str, Any]:
        path = f"{self._class}/{quote(identifier, safe='')}"
        return expect_object(await self.ask("GET", path, query={"@verbose": 2}), "data")

    @property
    def _class(self) -> str:
        return f"{API}/{quote(self.settings.project, safe='')}"

    @property
    def _inactive(self) -> set[str]:
        return {self.options.closed_status, *self.options.inactive_statuses}

    def _changes(self, ticket: Ticket) -> dict[str, Json]:
        wanted = self.options.set_priority and ticket.priority
        return {**({"priority": ticket.priority} if wanted else {}), **ticket.fields}


def _message_ids(issue: dict[str, Any]) -> list[str]:
    return [
        expect_identifier(message) for message in expect_objects(issue, "attributes", "messages")
    ]


def _name(value: Json) -> Json:
    """Return the value of a property; for a linked object, its name."""
    return value.get("name") if isinstance(value, dict) else value
