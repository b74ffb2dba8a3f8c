"""GitLab issues: https://docs.gitlab.com/api/issues/ and https://docs.gitlab.com/api/notes/."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar
from urllib.parse import quote

from pydantic import Field

from tocsin import Health, Idempotency, Json, Misconfigured, Refused, Ticket, TicketSettings
from tocsin_plugins.ticketing.http_tracker import (
    HttpTracker,
    expect_identifier,
    expect_object,
    expect_objects,
    hash_key,
)
from tocsin_plugins.ticketing.markup import replace_unprintable

_PLANNER = 15  # the first role that may label: https://docs.gitlab.com/user/permissions/


def find_problems(
    project: Mapping[str, Any], settings: TicketSettings, *, is_assignable: bool
) -> Iterator[str]:
    """Yield what is wrong with a project, or with what the token may do there."""
    name, path = settings.project, str(project.get("path_with_namespace"))
    if path.lower() != name.lower():
        yield f"project: name it by its path, {path}"
    if project.get("issues_access_level") == "disabled":
        yield f"{name} has its issues turned off"
    if project.get("archived"):
        yield f"{name} is archived"
    if _highest_role(project) < _PLANNER:
        yield f"the token may not label issues of {name}: it needs the role Planner or Reporter"
    if not is_assignable:
        yield f"assignee: {settings.assignee} is no member of {name}"
    if any("," in label for label in (*settings.labels, *settings.priorities.values())):
        yield "labels, priorities: GitLab takes no comma in a label"


def _highest_role(project: Mapping[str, Any]) -> int:
    """Return the highest role that the token has, by its number; 0 where it is no member."""
    given = project.get("permissions") or {}
    found = [given.get("project_access"), given.get("group_access")]
    return max((it.get("access_level", 0) for it in found if isinstance(it, dict)), default=0)


_QUICK_ACTION = re.compile(r"^(?=/)", re.MULTILINE)
_CODE = re.compile(r"((?<!\\)`+[^`]*`+)")  # within it a backslash means nothing
_REFERENCE = re.compile(r"(?<!\\)(?=[!%][\w\"])")  # those that mean something in GitLab alone


def escape_markdown(markdown: str) -> str:
    """Return Markdown in which no line is a quick action and no word names a merge request.

    GitLab looks at lines after it has dropped every CR, and so do we.
    """
    parts = _CODE.split(markdown.replace("\r", ""))
    parts[::2] = [_REFERENCE.sub(r"\\", part) for part in parts[::2]]
    return _QUICK_ACTION.sub(r"\\", "".join(parts))


_MOST = 100
_MOST_PAGES = 20
_LATELY = timedelta(days=1)  # far longer than a search may lag, or two clocks differ
_SCOPE = "severity::"


class GitLab(HttpTracker):
    """Issues of one project; the key of each is the last word of its description.

    No comment of HTML: those are not indexed, since GitLab's search is that of PostgreSQL.
    """

    class Options(HttpTracker.Options):
        """What only GitLab can be told."""

        confidential: bool = Field(
            default=True, description="Show new issues to members of the project only."
        )

    receiver = "gitlab"
    reserved = frozenset(
        {"title", "description", "labels", "add_labels", "remove_labels", "confidential"}
        | {"assignee_id", "assignee_ids", "issue_type", "state_event"}
    )
    idempotency = Idempotency.SEARCH
    settling: ClassVar[timedelta | None] = timedelta(minutes=1)
    options: Options

    def authorization(self) -> Mapping[str, str]:
        """Return the token."""
        return {"PRIVATE-TOKEN": self.settings.secret.get_secret_value()}

    async def check(self) -> Health:
        """Return whether the project takes issues with labels of this token, for this assignee."""
        project = expect_object(await self.ask("GET", self._project))
        name, assignee = self.settings.project, self.settings.assignee
        is_assignable = assignee is None or await self._member(assignee) is not None
        found = find_problems(project, self.settings, is_assignable=is_assignable)
        return Health(detail=f"{name} answers, and takes issues", problems=tuple(found))

    async def find(self, key: str) -> str | None:
        """Return the number of the issue that has the key in its description.

        What was made lately is looked for in the list: the search may learn of it later.
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
        """Make an issue."""
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

    async def comments(self, identifier: str) -> Sequence[str]:
        """Return the comments, the latest first; a page may have fewer than there are."""
        path, page, texts = f"{self._issue(identifier)}/notes", "1", list[str]()
        for _ in range(_MOST_PAGES):
            query = {"activity_filter": "only_comments", "per_page": _MOST, "page": page}
            answer = await self.answer("GET", path, query=query)
            texts += [str(object_.get("body")) for object_ in expect_objects(answer.json)]
            page = answer.headers.get("X-Next-Page", "")
            if not page:
                break
        return texts

    async def comment(self, identifier: str, text: str) -> None:
        """Comment on an issue."""
        note = replace_unprintable({"body": escape_markdown(text)})
        await self.ask("POST", f"{self._issue(identifier)}/notes", json=note)

    async def update(self, identifier: str, ticket: Ticket) -> None:
        """Put the label of the severity in the place of the one before, and set the fields."""
        labels = expect_object(await self.ask("GET", self._issue(identifier))).get("labels") or []
        ours = {
            *self.settings.priorities.values(),
            *(label for label in labels if _is_severity(label)),
        }
        wanted = self._labels(ticket)
        changes: dict[str, Json] = dict(ticket.fields)
        if new := [it for it in wanted if it not in labels]:
            changes["add_labels"] = ",".join(new)
        if old := [label for label in labels if label in ours and label not in wanted]:
            changes["remove_labels"] = ",".join(old)
        if changes:
            await self.ask("PUT", self._issue(identifier), json=replace_unprintable(changes))

    async def is_open(self, identifier: str) -> bool | None:
        """Return whether an issue is open; one that was moved to another project is none."""
        try:
            issue = expect_object(await self.ask("GET", self._issue(identifier)))
        except Refused as refused:
            if refused.is_missing:
                return None
            raise
        return None if _is_moved(issue) else issue.get("state") == "opened"

    async def close(self, identifier: str, reason: str) -> None:
        """Close an issue, once a comment says why."""
        if not any(reason in text for text in await self.comments(identifier)):
            await self.comment(identifier, reason)
        await self.ask("PUT", self._issue(identifier), json={"state_event": "close"})

    def link(self, identifier: str) -> str:
        """Return the page of an issue."""
        return f"{self.settings.url}/{quote(self.settings.project)}/-/issues/{quote(identifier)}"

    @property
    def _project(self) -> str:
        return f"/api/v4/projects/{quote(self.settings.project, safe='')}"

    def _issue(self, identifier: str) -> str:
        return f"{self._project}/issues/{quote(identifier, safe='')}"

    def _labels(self, ticket: Ticket) -> list[str]:
        """Return the labels, the operator's word for the severity in place of the template's."""
        own = [
            part for part in str(ticket.body.get("labels", "")).split(",") if not _is_severity(part)
        ]
        priority = [ticket.priority] if ticket.priority else []
        return [label for label in dict.fromkeys([*own, *priority, *self.settings.labels]) if label]

    async def _assignee(self, name: str) -> int:
        if (found := await self._member(name)) is None:
            raise Misconfigured(f"assignee: {name} is no member of {self.settings.project}")
        return found

    async def _member(self, name: str) -> int | None:
        """Return the number of the member of this user name, None where there is none."""
        query = {"query": name, "per_page": _MOST}
        found = expect_objects(await self.ask("GET", f"{self._project}/members/all", query=query))
        named = (it for it in found if str(it.get("username")).lower() == name.lower())
        return next((int(expect_identifier(it)) for it in named), None)


def _is_severity(label: str) -> bool:
    return label.startswith(_SCOPE)


def _is_moved(issue: Mapping[str, Any]) -> bool:
    return issue.get("moved_to_id") is not None
