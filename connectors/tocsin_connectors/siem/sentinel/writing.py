"""Writing to incidents of Sentinel: comments, and where an incident stands."""

from __future__ import annotations

from typing import Any

from tocsin import IncidentStatus, Refused, TryLater
from tocsin_connectors.siem.records import child, text
from tocsin_connectors.siem.sentinel.incidents import STATUSES
from tocsin_connectors.siem.sentinel.plain import derive_comment_name, escape_markup
from tocsin_connectors.siem.sentinel.workspace import SentinelClient

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
"""What a change has to repeat: a PUT replaces the whole incident."""


async def write_comment(workspace: SentinelClient, incident: str, message: str, key: str) -> None:
    """Write a comment once for its key, which names it."""
    name = derive_comment_name(key)
    if await workspace.write_comment(incident, name, escape_markup(message)):
        return
    if await workspace.comment(incident, name) is None:
        raise TryLater("the comment conflicts with a change that somebody else is making")


async def write_status(workspace: SentinelClient, incident: str, status: IncidentStatus) -> None:
    """Set where an incident stands, and leave the rest as it is.

    Raises `Refused` where there is no such incident, and `TryLater` where others keep changing it.
    """
    for _ in range(_ATTEMPTS):
        found = await workspace.incident(incident)
        if found is None:
            raise Refused(f"there is no incident {incident}")
        told = child(found, "properties")
        if STATUSES.get((text(told, "status") or "").casefold()) is status:
            return
        if await workspace.write(incident, _build_properties(told, status), text(found, "etag")):
            return
    raise TryLater("somebody else is changing the incident")


def _build_properties(told: dict[str, Any], status: IncidentStatus) -> dict[str, Any]:
    kept = {name: told[name] for name in _KEPT_PROPERTIES if told.get(name) is not None}
    closed = {"classification": "Undetermined"} if status is IncidentStatus.CLOSED else {}
    return {**closed, **kept, "status": status.value}
