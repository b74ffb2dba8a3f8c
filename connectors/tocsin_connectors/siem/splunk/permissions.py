"""Permission check of a Splunk token."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

from tocsin import Api, Broken, CredentialsRefused, Refused, Window
from tocsin_connectors.siem.records import child, children, text, texts
from tocsin_connectors.siem.splunk import spl
from tocsin_connectors.siem.splunk.jobs import SearchJobs

CONTEXT = "/services/authentication/current-context"
SERVER_INFO = "/services/server/info"
MIN_VERSION = (9, 0, 2)
"""First version whose search API v2 is complete."""
_NUMBER = re.compile(r"\d{1,6}")
_SECOND = timedelta(seconds=1)


async def find_permission_problems(
    api: Api, jobs: SearchJobs, needed: Iterable[str], now: datetime
) -> tuple[str, tuple[str, ...]]:
    """Return the owner of the token, and the problems that the operator has to fix.

    Sends the requests of a read, for the last second. Raises if they fail.
    """
    username, capabilities = await _get_context(api)
    if (version := await _get_version(api)) and _rank(version) < MIN_VERSION:
        oldest = ".".join(map(str, MIN_VERSION))
        return username, (f"Splunk {version} has no search API v2: update it to {oldest} or later",)
    problems = [
        f"{username} lacks the capability {name}; grant it to one of the user's roles"
        for name in needed
        if name not in capabilities
    ]
    if not await jobs.all(spl.FINDINGS_INDEX_SEARCH):
        problems.append(f"{username} cannot search the index notable, or the index does not exist")
    window = Window(now - _SECOND, now)
    await jobs.all(spl.build_indexed_search(window, _SECOND))
    await jobs.all(spl.build_reviewed_search(window))
    return username, tuple(problems)


async def _get_version(api: Api) -> str | None:
    """Return the version of the search head, or None if the token may not see it."""
    try:
        answer = await api.get(SERVER_INFO, output_mode="json")
    except (CredentialsRefused, Refused):
        return None
    entries = children(answer.json, "entry") if isinstance(answer.json, dict) else []
    return text(child(entries[0], "content"), "version") if entries else None


def _rank(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in _NUMBER.findall(version)[: len(MIN_VERSION)])


async def _get_context(api: Api) -> tuple[str, frozenset[str]]:
    answer = await api.get(CONTEXT, output_mode="json")
    entries = children(answer.json, "entry") if isinstance(answer.json, dict) else []
    content = child(entries[0], "content") if entries else {}
    username = text(content, "username")
    if username is None:
        raise Broken(f"GET {CONTEXT} returned a response without `entry` and `username`")
    return username, frozenset(texts(content, "capabilities"))
