"""Base class for Jira Cloud and Jira Data Center.

An issue's key is a label. An entity property would be less visible, but a search finds it only
if an app declares an index for it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar
from urllib.parse import quote

from tocsin import (
    ApiResponse,
    Broken,
    Health,
    Idempotency,
    IncidentDisposition,
    Json,
    PushRequest,
    Refused,
    RemoteStatus,
    Ticket,
    TicketSettings,
    parse_json,
    parse_webhook_body,
    require_webhook_token,
)
from tocsin_plugins.ticketing.http_tracker import (
    HttpTracker,
    expect_object,
    expect_objects,
    expect_text,
    hash_key,
    optional_text,
)
from tocsin_plugins.ticketing.jira.health import USUAL_TYPE, find_problems
from tocsin_plugins.ticketing.jira.options import JiraOptions
from tocsin_plugins.ticketing.jira.transitions import build_transition
from tocsin_plugins.ticketing.markup import replace_unprintable
from tocsin_plugins.ticketing.webhooks import require_signature

_SHOWN = 1_000
_PAGE = 100
_MOST_PAGES = 100
_DONE = "done"
STATUS_FIELDS = "status,resolution,updated"
"""The fields that `to_status` reads."""


class Jira(HttpTracker):
    """Issues in one project."""

    Options = JiraOptions
    receiver = "jira"
    idempotency = Idempotency.SEARCH
    settling: ClassVar[timedelta | None] = timedelta(minutes=1)
    accepts_webhooks: ClassVar[bool] = True
    api: ClassVar[str]
    """Path of the API version."""
    options: JiraOptions

    # implemented by subclasses

    @abstractmethod
    async def search(self, jql: str, fields: str) -> list[dict[str, Any]]:
        """Return the first issues that match a query."""

    @abstractmethod
    def comment_body(self, markdown: str) -> Json:
        """Return the body of a comment."""

    @abstractmethod
    def comment_text(self, body: Json) -> str:
        """Return the text of a comment's body."""

    @abstractmethod
    def user(self, name: str) -> dict[str, str]:
        """Return the value of a user field."""

    @abstractmethod
    def search_query(self, name: str) -> dict[str, str]:
        """Return the search parameters of a user."""

    def settings_problems(self) -> Iterator[str]:
        """Yield problems with settings that only the subclass has."""
        yield from ()

    # shared

    async def answer(self, method: str, path: str, **options: Any) -> ApiResponse:
        """Return Jira's response; errors include Jira's reasons."""
        return await super().answer(method, f"{self.api}{path}", **options)

    def _to_error(self, refused: Refused) -> Exception:
        return super()._to_error(explain_refusal(refused))

    async def check(self) -> Health:
        """Report problems with the project, the issue type, fields and permissions."""
        return await find_problems(self)

    async def find(self, key: str) -> str | None:
        """Return the issue with the key's label, even if it was moved.

        Anonymous searches do not find anything either, so check the sign-in after an empty result.
        """
        label = hash_key(key)
        query = f'labels = "{label}" ORDER BY created ASC'
        for issue in await self.search(query, "key,labels"):
            if label in (issue.get("fields") or {}).get("labels", ()):
                return issue_key(issue)
        await self.ask("GET", "/myself")
        return None

    async def create(self, ticket: Ticket) -> str:
        """Create an issue."""
        given: dict[str, Json] = dict(ticket.body["fields"])
        own = given.get("labels")
        labels = [hash_key(ticket.key), *(own if isinstance(own, list) else ())]
        assignee = self.settings.assignee
        fields = {
            **given,
            **self._priority(ticket),
            **({"assignee": self.user(assignee)} if assignee else {}),
            **self.fields(ticket),
            "project": {"key": self.settings.project},
            "issuetype": {"name": self.settings.issue_type or USUAL_TYPE},
            "labels": list(dict.fromkeys([*labels, *self.settings.labels])),
        }
        made = await self.ask("POST", "/issue", json={"fields": replace_unprintable(fields)})
        return issue_key(expect_object(made))

    async def list_notes(self, identifier: str) -> Sequence[str]:
        """Return the comments of all pages."""
        path = f"{self._issue(identifier)}/comment"
        return [self.comment_text(page.get("body")) async for page in self.pages(path, "comments")]

    async def add_note(self, identifier: str, text: str) -> None:
        """Comment on an issue."""
        body: dict[str, Json] = {"body": self.comment_body(str(replace_unprintable(text)))}
        if self.options.internal_comments:
            body["properties"] = [{"key": "sd.public.comment", "value": {"internal": True}}]
        await self.ask("POST", f"{self._issue(identifier)}/comment", json=body)

    async def update(self, identifier: str, ticket: Ticket) -> None:
        """Update the priority and the operator's fields of an open issue."""
        wanted = {**self._priority(ticket), **self.fields(ticket)}
        if not wanted:
            return
        now = await self._current_fields(identifier, "status,priority")
        if (now.get("priority") or {}).get("name") == ticket.priority:
            wanted.pop("priority", None)
        if wanted and _is_open(now):
            changed = {"fields": replace_unprintable(wanted)}
            await self.ask("PUT", self._issue(identifier), json=changed)

    async def read_status(self, identifier: str) -> RemoteStatus | None:
        """Return an issue's status; an issue is open unless its status is in the category Done."""
        try:
            return to_status(await self._current_fields(identifier, STATUS_FIELDS))
        except Refused as refused:
            if not refused.is_missing:
                raise
        await self.ask("GET", "/myself")  # anonymous clients get 404 as well
        return None

    async def list_closed_statuses(self) -> Sequence[str]:
        """Return the project's statuses in the category Done."""
        path = f"/project/{quote(self.settings.project, safe='')}/statuses"
        types = expect_objects(await self.ask("GET", path))
        found = [status for kind in types for status in expect_objects(kind, "statuses")]
        closed = (
            expect_text(status, "name") for status in found if not _is_open({"status": status})
        )
        return sorted(set(closed))

    async def close(self, identifier: str, reason: str) -> None:
        """Close an issue with the usual transition and resolution."""
        await self.close_as(identifier, reason, None)

    async def close_as(
        self, identifier: str, reason: str, disposition: IncidentDisposition | None
    ) -> None:
        """Apply the transition for a disposition, then comment with the reason.

        If someone closes the issue at the same time, their change stays, and no comment is added.
        """
        closure = self.options.select_closure(disposition)
        path = f"{self._issue(identifier)}/transitions"
        known = await self.ask("GET", path, query={"expand": "transitions.fields"})
        transition = build_transition(expect_objects(known, "transitions"), closure, identifier)
        try:
            await self.ask("POST", path, json=transition)
        except Refused:
            if await self.is_open(identifier):
                raise
            return
        await self.explain_closed(identifier, reason)

    async def explain_closed(self, identifier: str, reason: str) -> None:
        """Comment with the reason, unless a comment already gives it."""
        await self.comment_once(identifier, reason)

    @classmethod
    def parse_webhook(
        cls,
        settings: TicketSettings,
        request: PushRequest,
        now: datetime,  # noqa: ARG003 - the signature has no time
    ) -> Sequence[str]:
        """Return the issue that a webhook names; automation rules send the secret itself.

        https://developer.atlassian.com/cloud/jira/platform/webhooks/#secure-admin-webhooks
        """
        if "X-Hub-Signature" in request.headers:
            require_signature(settings, request, "X-Hub-Signature")
        else:
            require_webhook_token(settings, request)
        match parse_webhook_body(request):
            case {"issue": {"key": str(key)}}:
                return (key,)
        return ()

    def link(self, identifier: str) -> str:
        """Return the URL of an issue's page."""
        return f"{self.settings.url}/browse/{quote(identifier, safe='')}"

    def fields(self, ticket: Ticket) -> dict[str, Json]:
        """Return the operator's fields."""
        return dict(ticket.fields)

    async def pages(self, path: str, *names: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the objects on all pages; responses use one of several member names."""
        start = 0
        for _ in range(_MOST_PAGES):
            query = {"startAt": start, "maxResults": _PAGE}
            page = expect_object(await self.ask("GET", path, query=query))
            found = expect_objects(page, next((name for name in names if name in page), names[0]))
            for item in found:
                yield item
            start += len(found)
            if not found or page.get("isLast", start >= (page.get("total") or 0)):
                return

    def _priority(self, ticket: Ticket) -> dict[str, Json]:
        wanted = self.options.set_priority and ticket.priority
        return {"priority": {"name": ticket.priority}} if wanted else {}

    async def _current_fields(self, identifier: str, names: str) -> dict[str, Any]:
        issue = expect_object(
            await self.ask("GET", self._issue(identifier), query={"fields": names})
        )
        return expect_object(issue, "fields")

    @staticmethod
    def _issue(identifier: str) -> str:
        return f"/issue/{quote(identifier, safe='')}"


def explain_refusal(refused: Refused) -> Refused:
    """Return the error with Jira's reasons instead of the start of the response."""
    reasons = "; ".join(_refusal_reasons(refused.response))[:_SHOWN]
    if not reasons:
        return refused
    message = f"{str(refused).partition(': ')[0]}: {reasons}"
    return Refused(message, status=refused.status, response=refused.response)


def to_status(fields: Mapping[str, Any]) -> RemoteStatus:
    """Return the status of an issue with these fields."""
    is_open = _is_open(fields)
    resolution = (fields.get("resolution") or {}).get("name")
    return RemoteStatus(
        status=expect_text(expect_object(dict(fields), "status"), "name"),
        is_open=is_open,
        resolution=None if is_open else optional_text(resolution),
        version=optional_text(fields.get("updated")),
    )


def issue_key(issue: dict[str, Any]) -> str:
    """Return the key of an issue, such as SEC-7."""
    key = issue.get("key")
    if isinstance(key, str) and key:
        return key
    raise Broken("Jira's response lacks the issue key")


def _refusal_reasons(body: bytes) -> Iterator[str]:
    try:
        content = parse_json(body)
    except ValueError:
        return
    match content:
        case {"errorMessages": [*messages]}:
            yield from map(str, messages)
    match content:
        case {"errors": {**errors}}:
            yield from (f"{name}: {reason}" for name, reason in errors.items())


def _is_open(fields: Mapping[str, Any]) -> bool:
    match fields:
        case {"status": {"statusCategory": {"key": str(category)}}}:
            return category != _DONE
    return True
