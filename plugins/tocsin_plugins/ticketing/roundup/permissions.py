"""Health check and permission check for a Roundup tracker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from http import HTTPStatus
from urllib.parse import quote

from tocsin import CredentialsRefused, Health, Refused
from tocsin_plugins.ticketing.http_tracker import HttpTracker
from tocsin_plugins.ticketing.roundup.messages import API, expect_found

_KEYS = {"user": "username"}  # key properties other than `name`


async def find_problems(tracker: HttpTracker, closed_status: str) -> Health:
    """Report what is missing for creating issues.

    Raises `CredentialsRefused` if the user cannot read the tracker, and the errors of `ask`.
    """
    try:
        problems = [problem async for problem in _problems(tracker, closed_status)]
    except CredentialsRefused as refused:
        if refused.status != HTTPStatus.UNAUTHORIZED:
            raise
        raise CredentialsRefused(
            f"username or secret: {refused}", status=refused.status, response=refused.response
        ) from None
    detail = f"Roundup responds and has the class {tracker.settings.project}"
    return Health(detail=detail, problems=tuple(problems))


async def _problems(tracker: HttpTracker, closed_status: str) -> AsyncIterator[str]:
    settings = tracker.settings
    if not await _issue_class_problems(tracker):
        yield (
            f"project: the class {settings.project} does not exist; the default templates use "
            "`issue`"
        )
    named = {
        "status": (closed_status,),
        "priority": settings.priorities.values(),
        "keyword": settings.labels,
        "user": (settings.assignee,) if settings.assignee else (),
    }
    for kind, names in named.items():
        for name in dict.fromkeys(names):
            if not await expect_found(tracker, kind, {f"{_KEYS.get(kind, 'name')}:": name}):
                yield f"the {kind} {name} does not exist"


async def _issue_class_problems(tracker: HttpTracker) -> bool:
    """Return whether the class exists, after a request that tests the permission to create issues.

    The request for a link does not create anything, but Roundup rejects it if the origin is wrong.
    """
    project = tracker.settings.project
    try:
        await expect_found(tracker, project, {"@page_size": 1})
    except Refused as refused:
        if f"Class {project} not found".encode() not in refused.response:
            raise
        return False
    await tracker.ask("POST", f"{API}/{quote(project, safe='')}/@poe", json={})
    return True
