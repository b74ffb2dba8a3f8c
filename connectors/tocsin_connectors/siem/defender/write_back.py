"""Write-back to incidents: comments and status."""

from __future__ import annotations

from typing import Any

from tocsin import IncidentStatus, Refused
from tocsin_connectors.siem.defender.client import DefenderClient
from tocsin_connectors.siem.defender.mapping import STATUSES
from tocsin_connectors.siem.idempotency_marker import add_marker, has_marker, read_comments
from tocsin_connectors.siem.records import children, text

_MAX_MERGES = 5
_STATUS_WORDS = {
    IncidentStatus.NEW: "active",
    IncidentStatus.ACTIVE: "inProgress",
    IncidentStatus.CLOSED: "resolved",
}


async def write_comment(client: DefenderClient, incident: str, message: str, key: str) -> None:
    """Write a comment, unless a comment with this key exists.

    Comments have no keys, so each ends with a marker of its key.
    """
    found = await _get_current(client, incident)
    if not has_marker(key, read_comments(children(found, "comments"), "comment")):
        await client.write_comment(str(found["id"]), add_marker(message, key))


async def write_status(client: DefenderClient, incident: str, status: IncidentStatus) -> None:
    """Set the status of an incident, unless it has that status already."""
    found = await _get_current(client, incident)
    if STATUSES.get((text(found, "status") or "").casefold()) is not status:
        await client.write_status(str(found["id"]), _STATUS_WORDS[status])


async def _get_current(client: DefenderClient, name: str) -> dict[str, Any]:
    """Return the incident, or the one that it was merged into.

    Merged incidents cannot be written to. Raises `Refused` if there is none.
    """
    for _ in range(_MAX_MERGES):
        found = dict(await client.incident(name) or {})
        if not found:
            raise Refused(f"the incident {name} does not exist")
        redirected = text(found, "redirectIncidentId")
        if redirected is None:
            return {**found, "id": name}
        name = redirected
    raise Refused(f"incident {name} was merged more than {_MAX_MERGES} times")
