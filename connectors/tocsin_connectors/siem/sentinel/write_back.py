"""Write-back to incidents: comments and status.

Sentinel's portals render comments as Markdown with HTML:
https://learn.microsoft.com/azure/sentinel/incident-navigate-triage
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from tocsin import IncidentStatus, Refused, TryLater
from tocsin_connectors.siem.records import child, text
from tocsin_connectors.siem.sentinel.client import SentinelClient
from tocsin_connectors.siem.sentinel.mapping import STATUSES

MAX_COMMENT_LENGTH = 30_000
_MARKUP = frozenset('!"#$&*:;<=>?@[\\]^_`{|}~')
_AT_THE_BEGINNING = re.compile(r"[ \t]*(?:[+\-=]|\d{1,9}[.)])|[ \t]")
"""Line starts that make a list, a heading or a code block; the last character decides."""


def derive_comment_name(key: str) -> str:
    """Return the name of a comment, derived from its key."""
    return str(uuid5(NAMESPACE_URL, f"tocsin:{key}"))


def escape_markup(text: str) -> str:
    """Return a text as a comment without markup, truncated to the maximum length.

    Possible markup is written as character references, which neither CommonMark (section 6.4) nor
    HTML interprets as markup or as part of a link.
    """
    kept, room = [], MAX_COMMENT_LENGTH
    for part in _escape_parts(text):
        room -= len(part.encode("utf-16-le", "surrogatepass")) // 2  # as .NET counts
        if room < 0:
            break
        kept.append(part)
    return "".join(kept)


def _escape_parts(text: str) -> Iterator[str]:
    for line in text.splitlines(keepends=True):
        content = line.rstrip("\r\n")
        marked = len(match[0]) if (match := _AT_THE_BEGINNING.match(content)) else 0
        for index, character in enumerate(content):
            is_markup = character in _MARKUP or index == marked - 1
            yield f"&#{ord(character)};" if is_markup else character
        if content != line:
            yield "<br>\n"


_ATTEMPTS = 3
_KEPT_PROPERTIES = (
    "title",
    "description",
    "severity",
    "owner",
    "labels",
    "firstActivityTimeUtc",
    "lastActivityTimeUtc",
    "classification",
    "classificationReason",
    "classificationComment",
)
"""Properties that a change has to repeat: a PUT replaces the whole incident."""


async def write_comment(workspace: SentinelClient, incident: str, message: str, key: str) -> None:
    """Write a comment, whose name is derived from its key."""
    name = derive_comment_name(key)
    if await workspace.write_comment(incident, name, escape_markup(message)):
        return
    if await workspace.comment(incident, name) is None:
        raise TryLater("the comment conflicts with a concurrent change")


async def write_status(workspace: SentinelClient, incident: str, status: IncidentStatus) -> None:
    """Set the status of an incident, and keep its other properties.

    Raises `Refused` if the incident does not exist, and `TryLater` if others keep changing it.
    """
    for _ in range(_ATTEMPTS):
        found = await workspace.incident(incident)
        if found is None:
            raise Refused(f"the incident {incident} does not exist")
        properties = child(found, "properties")
        if STATUSES.get((text(properties, "status") or "").casefold()) is status:
            return
        if await workspace.write(
            incident, _build_properties(properties, status), text(found, "etag")
        ):
            return
    raise TryLater("the incident is being changed concurrently")


def _build_properties(properties: dict[str, Any], status: IncidentStatus) -> dict[str, Any]:
    kept = {name: properties[name] for name in _KEPT_PROPERTIES if properties.get(name) is not None}
    closed = {"classification": "Undetermined"} if status is IncidentStatus.CLOSED else {}
    return {**closed, **kept, "status": status.value}
