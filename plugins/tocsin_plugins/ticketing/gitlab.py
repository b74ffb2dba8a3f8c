"""GitLab issues: https://docs.gitlab.com/api/issues/ and https://docs.gitlab.com/api/notes/."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar
from urllib.parse import quote

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
    hash_key,
    optional_text,
)
from tocsin_plugins.ticketing.markup import replace_unprintable
from tocsin_plugins.ticketing.webhooks import (
    is_standard_key,
    list_numbers,
    require_secret,
    require_signing_token,
)

_PLANNER = 15  # the lowest role that can label: https://docs.gitlab.com/user/permissions/
_QUICK_ACTION = re.compile(r"^(?=/)", re.MULTILINE)
_CODE = re.compile(r"((?<!\\)`+[^`]*`+)")  # backslashes have no effect within code
_REFERENCE = re.compile(r"(?<!\\)(?=[!%][\w\"])")  # references that only GitLab interprets
_MOST = 100
_MOST_PAGES = 20
_LATELY = timedelta(days=1)  # far longer than the search lag or clock skew
_SCOPE = "severity::"


class GitLabOptions(HttpTracker.Options):
    """Options for GitLab."""

    confidential: bool = Field(
        default=True, description="Whether only project members can see new issues."
    )


class GitLab(HttpTracker):
    """Issues in one project; the last word of each description is the key.

    HTML comments are not an option, because GitLab's search does not index them.
    """

    Options = GitLabOptions
    receiver = "gitlab"
    reserved = frozenset(
        {"title", "description", "labels", "add_labels", "remove_labels", "confidential"}
        | {"assignee_id", "assignee_ids", "issue_type", "state_event"}
    )
    idempotency = Idempotency.SEARCH
    settling: ClassVar[timedelta | None] = timedelta(minutes=1)
    status_batch: ClassVar[int] = _MOST
    accepts_webhooks: ClassVar[bool] = True
    options: GitLabOptions

    def authorization(self) -> Mapping[str, str]:
        """Return the token."""
        return {"PRIVATE-TOKEN": self.settings.secret.get_secret_value()}

    async def check(self) -> Health:
        """Report whether the token can create labeled issues in the project with this assignee."""
        project = expect_object(await self.ask("GET", self._project))
        name, assignee = self.settings.project, self.settings.assignee
        is_assignable = assignee is None or await self._member(assignee) is not None
        found = find_problems(project, self.settings, is_assignable=is_assignable)
        return Health(detail=f"{name} accepts issues", problems=tuple(found))

    async def find(self, key: str) -> str | None:
        """Return the number of the issue whose description contains the key.

        Recent issues come from the list, because the search index may contain them only later.
        """
        mark, since = hash_key(key), self.tools.clock.now() - _LATELY
        shared: dict[str, Json] = {"scope": "all", "order_by": "created_at", "per_page": _MOST}
        latest = shared | {"created_after": since.isoformat(timespec="seconds")}
        for query in (latest, shared | {"search": mark, "in": "description"}):
            for issue in expect_objects(
                await self.ask("GET", f"{self._project}/issues", query=query)
            ):
                if mark in str(issue.get("description")) and not _is_moved(issue):
                    return expect_identifier(issue, "iid")
        return None

    async def create(self, ticket: Ticket) -> str:
        """Create an issue."""
        text = escape_markdown(ticket.body["description"])
        issue: dict[str, Json] = {
            **ticket.body,
            "description": f"{text}\n\nTocsin `{hash_key(ticket.key)}`",
            "labels": ",".join(self._labels(ticket)),
            "confidential": self.options.confidential,
        }
        if self.settings.issue_type:
            issue["issue_type"] = self.settings.issue_type
        if self.settings.assignee:
            issue["assignee_ids"] = [await self._assignee(self.settings.assignee)]
        wanted = replace_unprintable({**issue, **ticket.fields})
        return expect_identifier(
            await self.ask("POST", f"{self._project}/issues", json=wanted), "iid"
        )

    async def list_notes(self, identifier: str) -> Sequence[str]:
        """Return the comments, the latest first; there may be more than one page."""
        path, page, texts = f"{self._issue(identifier)}/notes", "1", list[str]()
        for _ in range(_MOST_PAGES):
            query = {"activity_filter": "only_comments", "per_page": _MOST, "page": page}
            answer = await self.answer("GET", path, query=query)
            texts += [str(note.get("body")) for note in expect_objects(answer.json)]
            page = answer.headers.get("X-Next-Page", "")
            if not page:
                break
        return texts

    async def add_note(self, identifier: str, text: str) -> None:
        """Comment on an issue."""
        note = replace_unprintable({"body": escape_markdown(text)})
        await self.ask("POST", f"{self._issue(identifier)}/notes", json=note)

    async def update(self, identifier: str, ticket: Ticket) -> None:
        """Replace the severity label, and set the operator's fields."""
        labels = expect_object(await self.ask("GET", self._issue(identifier))).get("labels") or []
        ours = {
            *self.settings.priorities.values(),
            *(label for label in labels if _is_severity(label)),
        }
        wanted = self._labels(ticket)
        changes: dict[str, Json] = dict(ticket.fields)
        if new := [label for label in wanted if label not in labels]:
            changes["add_labels"] = ",".join(new)
        if old := [label for label in labels if label in ours and label not in wanted]:
            changes["remove_labels"] = ",".join(old)
        if changes:
            await self.ask("PUT", self._issue(identifier), json=replace_unprintable(changes))

    async def read_status(self, identifier: str) -> RemoteStatus | None:
        """Return an issue's status; None if the issue was moved to another project."""
        try:
            issue = expect_object(await self.ask("GET", self._issue(identifier)))
        except Refused as refused:
            if refused.is_missing:
                return None
            raise
        return None if _is_moved(issue) else _to_status(issue)

    async def read_statuses(self, identifiers: Sequence[str]) -> Mapping[str, RemoteStatus]:
        """Return the statuses of issues, with a single request for all issues in the list."""
        query: dict[str, Json] = {"scope": "all", "per_page": _MOST, "iids[]": [*identifiers]}
        listed = expect_objects(await self.ask("GET", f"{self._project}/issues", query=query))
        found = {
            expect_identifier(issue, "iid"): _to_status(issue)
            for issue in listed
            if not _is_moved(issue)
        }
        others = [identifier for identifier in identifiers if identifier not in found]
        return {**found, **await super().read_statuses(others)}

    async def list_closed_statuses(self) -> Sequence[str]:
        """Return the only closed status."""
        return ("closed",)

    async def close(self, identifier: str, reason: str) -> None:
        """Close an issue, then comment with the reason."""
        await self.ask("PUT", self._issue(identifier), json={"state_event": "close"})
        await self.explain_closed(identifier, reason)

    async def explain_closed(self, identifier: str, reason: str) -> None:
        """Comment with the reason, unless a comment already gives it."""
        await self.comment_once(identifier, reason)

    @classmethod
    def parse_webhook(
        cls, settings: TicketSettings, request: PushRequest, now: datetime
    ) -> Sequence[str]:
        """Return the issue that a webhook from this project names.

        The secret is a signing token, or the secret token that older versions send in plain text:
        https://docs.gitlab.com/user/project/integrations/webhooks/
        """
        if is_standard_key(settings):
            require_signing_token(settings, request, now)
        else:
            require_secret(settings, request, "X-Gitlab-Token")
        match parse_webhook_body(request):
            case {
                "object_kind": "issue" | "work_item",
                "object_attributes": {"iid": number},
                "project": {"path_with_namespace": str(path)},
            } if path.casefold() == settings.project.casefold():
                return list_numbers(number)
        return ()

    def link(self, identifier: str) -> str:
        """Return the URL of an issue's page."""
        return f"{self.settings.url}/{quote(self.settings.project)}/-/issues/{quote(identifier)}"

    @property
    def _project(self) -> str:
        return f"/api/v4/projects/{quote(self.settings.project, safe='')}"

    def _issue(self, identifier: str) -> str:
        return f"{self._project}/issues/{quote(identifier, safe='')}"

    def _labels(self, ticket: Ticket) -> list[str]:
        """Return the labels, with the operator's severity label in place of the template's."""
        own = [
            part for part in str(ticket.body.get("labels", "")).split(",") if not _is_severity(part)
        ]
        priority = [ticket.priority] if ticket.priority else []
        return [label for label in dict.fromkeys([*own, *priority, *self.settings.labels]) if label]

    async def _assignee(self, name: str) -> int:
        if (found := await self._member(name)) is None:
            raise Misconfigured(f"assignee: {name} is not a member of {self.settings.project}")
        return found

    async def _member(self, name: str) -> int | None:
        """Return the ID of the member with this user name; None if there is no such member."""
        query = {"query": name, "per_page": _MOST}
        found = expect_objects(await self.ask("GET", f"{self._project}/members/all", query=query))
        named = (member for member in found if str(member.get("username")).lower() == name.lower())
        return next((int(expect_identifier(member)) for member in named), None)


def find_problems(
    project: Mapping[str, Any], settings: TicketSettings, *, is_assignable: bool
) -> Iterator[str]:
    """Yield problems with a project, or with the token's permissions there."""
    name, path = settings.project, str(project.get("path_with_namespace"))
    if path.lower() != name.lower():
        yield f"project: use the project's path, {path}"
    if project.get("issues_access_level") == "disabled":
        yield f"issues are disabled in {name}"
    if project.get("archived"):
        yield f"{name} is archived"
    if _highest_role(project) < _PLANNER:
        yield f"the token cannot label issues in {name}: give it the role Planner or Reporter"
    if not is_assignable:
        yield f"assignee: {settings.assignee} is not a member of {name}"
    if any("," in label for label in (*settings.labels, *settings.priorities.values())):
        yield "labels, priorities: GitLab labels cannot contain commas"


def _highest_role(project: Mapping[str, Any]) -> int:
    """Return the token's highest access level; 0 if the token is not a member."""
    given = project.get("permissions") or {}
    found = [given.get("project_access"), given.get("group_access")]
    return max(
        (access.get("access_level", 0) for access in found if isinstance(access, dict)), default=0
    )


def escape_markdown(markdown: str) -> str:
    """Return Markdown without quick actions and without references to merge requests.

    Like GitLab, it removes every CR before it looks at lines.
    """
    parts = _CODE.split(markdown.replace("\r", ""))
    parts[::2] = [_REFERENCE.sub(r"\\", part) for part in parts[::2]]
    return _QUICK_ACTION.sub(r"\\", "".join(parts))


def _is_severity(label: str) -> bool:
    return label.startswith(_SCOPE)


def _to_status(issue: Mapping[str, Any]) -> RemoteStatus:
    state = expect_text(issue, "state")
    version = optional_text(issue.get("updated_at"))
    return RemoteStatus(status=state, is_open=state == "opened", version=version)


def _is_moved(issue: Mapping[str, Any]) -> bool:
    return issue.get("moved_to_id") is not None
