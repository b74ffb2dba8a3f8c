"""Health check of a Jira project."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tocsin import CredentialsRefused, Health, Refused, Severity
from tocsin_plugins.ticketing.http_tracker import expect_object

if TYPE_CHECKING:
    from tocsin_plugins.ticketing.jira.tracker import Jira

USUAL_TYPE = "Task"
USUAL_PRIORITIES: Mapping[Severity, str] = {
    Severity.INFORMATIONAL: "Lowest",
    Severity.LOW: "Low",
    Severity.MEDIUM: "Medium",
    Severity.HIGH: "High",
    Severity.CRITICAL: "Highest",
}
"""Default names of priorities, as in the contract."""

PERMISSIONS = (
    "BROWSE_PROJECTS",
    "CREATE_ISSUES",
    "EDIT_ISSUES",
    "ADD_COMMENTS",
    "TRANSITION_ISSUES",
)
_FILLED_BY_JIRA = ("project", "issuetype", "reporter")
_OURS = ("summary", "description", "labels")
_RESERVED = ("project", "issuetype", "labels")


async def find_problems(jira: Jira) -> Health:
    """Return the account's name, and all problems with creating issues; raises
    `CredentialsRefused`.
    """
    problems = [*_settings(jira)]
    try:
        me = expect_object(await jira.ask("GET", "/myself"))
    except CredentialsRefused as refused:
        if not problems:
            raise
        return Health(detail="no further checks were made", problems=(*problems, str(refused)))
    kind = jira.settings.issue_type or USUAL_TYPE
    problems += [problem async for problem in _problems(jira, kind)]
    name = me.get("displayName") or me.get("name")
    return Health(
        detail=f"{name} can create issues of the type {kind} in {jira.settings.project}",
        problems=tuple(problems),
    )


def _settings(jira: Jira) -> Iterator[str]:
    for label in jira.settings.labels:
        if any(map(str.isspace, label)):
            yield f"labels: {label!r} contains a space, which is not allowed in Jira labels"
    for name in _RESERVED:
        if name in jira.settings.fields:
            yield f"fields.{name}: has no effect; set `project`, `issue_type` or `labels` instead"
    yield from jira.settings_problems()


async def _problems(jira: Jira, kind: str) -> AsyncIterator[str]:
    project = jira.settings.project
    try:
        missing = await _missing_permissions(jira)
    except Refused as refused:
        if not refused.is_missing:
            raise
        needed = ", ".join(_permissions(jira))
        yield (
            f"project: {project} does not exist, or the account cannot see it; grant the account "
            f"{needed}"
        )
        return
    for permission in missing:
        yield f"the account lacks the permission {permission} in {project}"
    if "CREATE_ISSUES" not in missing:
        async for problem in _issue_type_problems(jira, kind):
            yield problem
    async for problem in _resolution_problems(jira):
        yield problem
    if jira.settings.assignee and not await _may_be_assigned(jira, jira.settings.assignee):
        yield f"assignee: {jira.settings.assignee} cannot be the assignee of issues in {project}"


async def _missing_permissions(jira: Jira) -> list[str]:
    wanted = _permissions(jira)
    query = {"projectKey": jira.settings.project, "permissions": ",".join(wanted)}
    given = (
        expect_object(await jira.ask("GET", "/mypermissions", query=query)).get("permissions") or {}
    )
    return [
        permission
        for permission in wanted
        if not (given.get(permission) or {}).get("havePermission")
    ]


def _permissions(jira: Jira) -> list[str]:
    """Return the permissions that the settings require."""
    assigning = ["ASSIGN_ISSUES"] if jira.settings.assignee else []
    resolving = ["RESOLVE_ISSUES"] if jira.options.resolutions else []
    return [*PERMISSIONS, *assigning, *resolving]


async def _issue_type_problems(jira: Jira, kind: str) -> AsyncIterator[str]:
    path = f"/issue/createmeta/{quote(jira.settings.project, safe='')}/issuetypes"
    types = [page async for page in jira.pages(path, "issueTypes", "values")]
    found = next((issue_type for issue_type in types if issue_type.get("name") == kind), None)
    if found is None:
        known = ", ".join(str(issue_type.get("name")) for issue_type in types)
        yield f"issue_type: {jira.settings.project} has no issue type {kind}; use one of: {known}"
        return
    path = f"{path}/{quote(str(found.get('id')), safe='')}"
    listed = [page async for page in jira.pages(path, "fields", "values")]
    screen = {str(field.get("fieldId") or field.get("key")): field for field in listed}
    for problem in (
        *_absent_fields(jira, screen),
        *_required_fields(jira, screen),
        *_priorities(jira, screen),
    ):
        yield problem


def _absent_fields(jira: Jira, screen: Mapping[str, Any]) -> Iterator[str]:
    """Yield fields that cannot be set, because they are not on the create screen."""
    for name in _is_set_by_tocsin(jira):
        if name in screen:
            continue
        hint = ", or set options.set_priority = false" if name == "priority" else ""
        yield f"the field {name} is not on the create screen: add it{hint}"


def _required_fields(jira: Jira, screen: Mapping[str, Any]) -> Iterator[str]:
    given = {*_is_set_by_tocsin(jira), *_FILLED_BY_JIRA}
    for name, field in screen.items():
        if field.get("required") and not field.get("hasDefaultValue") and name not in given:
            yield f"the field {field.get('name')} is required: set fields.{name}"


def _priorities(jira: Jira, screen: Mapping[str, Any]) -> Iterator[str]:
    allowed = _names((screen.get("priority") or {}).get("allowedValues") or ())
    if not jira.options.set_priority or not allowed:
        return
    for severity, name in {**USUAL_PRIORITIES, **jira.settings.priorities}.items():
        if name and name not in allowed:
            yield (
                f"priorities.{severity}: unknown priority {name}; use one of "
                f"{', '.join(sorted(allowed))}"
            )


def _is_set_by_tocsin(jira: Jira) -> list[str]:
    priority = ["priority"] if jira.options.set_priority else []
    assignee = ["assignee"] if jira.settings.assignee else []
    own = [name for name in jira.settings.fields if name not in _RESERVED]
    return list(dict.fromkeys([*_OURS, *priority, *assignee, *own]))


def _names(values: Iterable[Any]) -> set[str]:
    return {str(value.get("name")) for value in values if isinstance(value, dict)}


async def _resolution_problems(jira: Jira) -> AsyncIterator[str]:
    """Yield unknown resolutions, which would otherwise only fail when an issue is closed."""
    resolutions = jira.options.resolutions
    if not resolutions:
        return
    try:
        found = await jira.ask("GET", "/resolution")
    except Refused:  # a token with scopes may not read the list
        return
    known = _names(found if isinstance(found, list) else ())
    folded = {name.casefold() for name in known}
    for option, wanted in resolutions.items():
        if known and wanted.casefold() not in folded:
            names = ", ".join(sorted(known))
            yield f"{option}: unknown resolution {wanted}; use one of: {names}"


async def _may_be_assigned(jira: Jira, name: str) -> bool:
    query = {"project": jira.settings.project, "maxResults": 50, **jira.search_query(name)}
    found = await jira.ask("GET", "/user/assignable/search", query=query)
    users = found if isinstance(found, list) else []
    wanted = jira.user(name).items()
    return any(isinstance(user, dict) and wanted <= user.items() for user in users)
