"""GitHub issues: https://docs.github.com/en/rest/issues/issues."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, ClassVar, Literal
from urllib.parse import quote, urlsplit

from pydantic import Field

from tocsin import (
    CredentialsRefused,
    Health,
    Idempotency,
    IncidentDisposition,
    Json,
    PushRequest,
    Refused,
    RemoteStatus,
    Ticket,
    TicketSettings,
    TryLater,
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
from tocsin_plugins.ticketing.webhooks import list_numbers, require_signature

_VERSION = "2022-11-28"
_MOST = 100
_SEVERITY = "severity: "  # prefix of the contract's labels
_LIMITED = timedelta(minutes=1)
_PUBLIC_API, _PUBLIC_WEB = "api.github.com", "https://github.com"


StateReason = Literal["completed", "not_planned", "duplicate"]
"""A `state_reason` that GitHub shows for a closed issue."""


class GitHubOptions(HttpTracker.Options):
    """Options for GitHub."""

    closed_as: StateReason = Field(
        default="completed", description="Reason that GitHub shows for closed issues."
    )
    close_as: Mapping[IncidentDisposition, StateReason] = Field(
        default={},
        description="Overrides `closed_as` for incidents with certain dispositions, for "
        'example `{ "false-positive" = "not_planned" }`.',
    )


class GitHub(HttpTracker):
    """Issues in one repository; each issue's text contains the key as an HTML comment."""

    Options = GitHubOptions
    receiver = "github"
    reserved = frozenset({"title", "body", "labels", "assignees", "state", "state_reason"})
    idempotency = Idempotency.SEARCH
    settling: ClassVar[timedelta | None] = timedelta(minutes=1)
    accepts_webhooks: ClassVar[bool] = True
    options: GitHubOptions

    async def ask(self, method: str, path: str, **options: Any) -> Json:
        """Return GitHub's response; 403 may mean that the rate limit was reached.

        https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
        """
        try:
            return await super().ask(method, path, **options)
        except CredentialsRefused as refused:
            if b"rate limit" in refused.response.lower():
                raise TryLater(str(refused), after=_LIMITED, throttled=True) from refused
            raise

    def authorization(self) -> Mapping[str, str]:
        """Return the token and the API version."""
        return {
            "Authorization": f"Bearer {self.settings.secret.get_secret_value()}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": _VERSION,
        }

    async def check(self) -> Health:
        """Report whether the token can create issues in the repository and set the assignee."""
        repository = expect_object(await self.ask("GET", self._repository))
        name, rights = self.settings.project, repository.get("permissions") or {}
        problems = {
            f"issues are disabled in {name}": not repository.get("has_issues", True),
            f"{name} is archived": bool(repository.get("archived")),
            f"the token cannot write issues in {name}: give its user push or triage access": not (
                rights.get("push") or rights.get("triage")
            ),
            f"assignee: {self.settings.assignee} cannot be the assignee of issues in {name}": not (
                await self._may_be_assigned()
            ),
        }
        wrong = tuple(words for words, is_so in problems.items() if is_so)
        return Health(detail=f"{name} accepts issues", problems=wrong)

    async def find(self, key: str) -> str | None:
        """Return the number of the issue whose text contains the key.

        Recent issues come from the list, because the search index contains them only later.
        """
        latest = {"state": "all", "sort": "created", "direction": "desc", "per_page": _MOST}
        listed = await self.ask("GET", f"{self._repository}/issues", query=latest)
        wanted = {"q": f'repo:{self.settings.project} is:issue in:body "{key}"', "per_page": _MOST}
        found = await self.ask("GET", "/search/issues", query=wanted)
        issues = [*expect_objects(listed), *expect_objects(found, "items")]
        return next(
            (
                _issue_number(issue)
                for issue in issues
                if _marker_text(key) in str(issue.get("body"))
            ),
            None,
        )

    async def create(self, ticket: Ticket) -> str:
        """Create an issue."""
        body = {**ticket.body, "body": f"{ticket.body['body']}\n\n{_marker_text(ticket.key)}"}
        assigned = [self.settings.assignee] if self.settings.assignee else []
        more: dict[str, Json] = {"labels": self._labels(ticket)}
        more |= {"assignees": assigned} if assigned else {}
        made = await self.ask(
            "POST", f"{self._repository}/issues", json={**body, **more, **ticket.fields}
        )
        return _issue_number(made)

    async def list_notes(self, identifier: str) -> Sequence[str]:
        """Return the latest comments: at least two pages, if there are that many."""
        issue = expect_object(await self.ask("GET", self._issue(identifier)))
        count = issue.get("comments")
        last = (count if isinstance(count, int) else 0) // _MOST + 1
        texts: list[str] = []
        for page in range(max(last - 1, 1), last + 1):
            query = {"per_page": _MOST, "page": page}
            found = await self.ask("GET", f"{self._issue(identifier)}/comments", query=query)
            texts += [str(comment.get("body")) for comment in expect_objects(found)]
        return texts

    async def add_note(self, identifier: str, text: str) -> None:
        """Comment on an issue."""
        await self.ask("POST", f"{self._issue(identifier)}/comments", json={"body": text})

    async def update(self, identifier: str, ticket: Ticket) -> None:
        """Replace the severity label, and set the operator's fields."""
        issue = expect_object(await self.ask("GET", self._issue(identifier)))
        current = [str(label.get("name")) for label in expect_objects(issue, "labels")]
        kept = [label for label in current if not self._is_priority(label)]
        labels = list(dict.fromkeys([*kept, *self._labels(ticket)]))
        change: dict[str, Json] = {**ticket.fields, "labels": labels}
        await self.ask("PATCH", self._issue(identifier), json=change)

    async def read_status(self, identifier: str) -> RemoteStatus | None:
        """Return an issue's status; None if the issue was moved or deleted."""
        try:
            issue = expect_object(await self.ask("GET", self._issue(identifier)))
        except Refused as refused:
            if refused.status in (
                HTTPStatus.NOT_FOUND,
                HTTPStatus.GONE,
                HTTPStatus.MOVED_PERMANENTLY,
            ):
                return None
            raise
        is_open = issue.get("state") == "open"
        return RemoteStatus(
            status=expect_text(issue, "state"),
            is_open=is_open,
            resolution=None if is_open else optional_text(issue.get("state_reason")),
            version=optional_text(issue.get("updated_at")),
        )

    async def list_closed_statuses(self) -> Sequence[str]:
        """Return the only closed status; reasons for closing are resolutions."""
        return ("closed",)

    async def close(self, identifier: str, reason: str) -> None:
        """Close an issue with the reason in `closed_as`."""
        await self.close_as(identifier, reason, None)

    async def close_as(
        self, identifier: str, reason: str, disposition: IncidentDisposition | None
    ) -> None:
        """Close an issue with GitHub's reason for a disposition, then comment with the reason."""
        closed_as = self.options.closed_as
        if disposition is not None:
            closed_as = self.options.close_as.get(disposition, closed_as)
        closed = {"state": "closed", "state_reason": closed_as}
        await self.ask("PATCH", self._issue(identifier), json=closed)
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
        """Return the issue that a webhook from this repository names.

        https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
        """
        require_signature(settings, request, "X-Hub-Signature-256")
        match parse_webhook_body(request):
            case {"issue": {"number": number}, "repository": {"full_name": str(name)}}:
                is_own = name.casefold() == settings.project.casefold()
                return list_numbers(number) if is_own else ()
        return ()

    def link(self, identifier: str) -> str:
        """Return an issue's URL; an Enterprise Server has its API below the web address."""
        parts = urlsplit(self.settings.url)
        own = f"{parts.scheme}://{parts.netloc}"
        web = _PUBLIC_WEB if parts.hostname == _PUBLIC_API else own
        return f"{web}/{quote(self.settings.project)}/issues/{quote(identifier)}"

    @property
    def _repository(self) -> str:
        return f"/repos/{quote(self.settings.project)}"

    def _issue(self, identifier: str) -> str:
        return f"{self._repository}/issues/{quote(identifier, safe='')}"

    def _labels(self, ticket: Ticket) -> list[str]:
        """Return the labels, with the operator's severity label in place of the template's."""
        own = [label for label in ticket.body.get("labels", ()) if not self._is_priority(label)]
        priority = [ticket.priority] if ticket.priority else []
        return list(dict.fromkeys([*own, *priority, *self.settings.labels]))

    def _is_priority(self, label: str) -> bool:
        return label.startswith(_SEVERITY) or label in self.settings.priorities.values()

    async def _may_be_assigned(self) -> bool:
        if self.settings.assignee is None:
            return True
        try:
            await self.ask("GET", f"{self._repository}/assignees/{quote(self.settings.assignee)}")
        except Refused as refused:
            if refused.is_missing:
                return False
            raise
        return True


def _marker_text(key: str) -> str:
    return f"<!-- tocsin {key} -->"


def _issue_number(issue: Json) -> str:
    return expect_identifier(issue, "number")
