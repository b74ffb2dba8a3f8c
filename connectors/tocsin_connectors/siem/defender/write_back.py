"""Write-back to incidents and alerts: comments and status."""

from __future__ import annotations

from typing import Any

from tocsin import IncidentStatus, Refused
from tocsin_connectors.siem.defender.client import ALERTS, INCIDENTS, DefenderClient
from tocsin_connectors.siem.defender.mapping import ALERT_PREFIX, STATUSES
from tocsin_connectors.siem.idempotency_marker import add_marker, has_marker, read_comments
from tocsin_connectors.siem.records import children, text

_MAX_MERGES = 5
_STATUS_WORDS = {
    IncidentStatus.NEW: "active",
    IncidentStatus.ACTIVE: "inProgress",
    IncidentStatus.CLOSED: "resolved",
}
_ALERT_STATUS_WORDS = {**_STATUS_WORDS, IncidentStatus.NEW: "new"}


async def write_comment(client: DefenderClient, incident: str, message: str, key: str) -> None:
    """Write a comment, unless a comment with this key exists.

    Comments have no keys, so each ends with a marker of its key.
    """
    kind, found = await _get_current(client, incident)
    if not has_marker(key, read_comments(children(found, "comments"), "comment")):
        await client.write_comment(kind, str(found["id"]), add_marker(message, key))


async def write_status(client: DefenderClient, incident: str, status: IncidentStatus) -> None:
    """Set the status of an incident, unless it has that status already."""
    kind, found = await _get_current(client, incident)
    words = _STATUS_WORDS if kind == INCIDENTS else _ALERT_STATUS_WORDS
    if STATUSES.get((text(found, "status") or "").casefold()) is not status:
        await client.write_status(kind, str(found["id"]), words[status])


async def _get_current(client: DefenderClient, name: str) -> tuple[str, dict[str, Any]]:
    """Return the alert or the incident, or the one that it was merged into, with its path.

    Merged incidents cannot be written to. Raises `Refused` if there is none.
    """
    if name.startswith(ALERT_PREFIX):
        alert_id = name.removeprefix(ALERT_PREFIX)
        if found := dict(await client.alert(alert_id) or {}):
            return ALERTS, {**found, "id": alert_id}
        raise Refused(f"the alert {alert_id} does not exist")
    for _ in range(_MAX_MERGES):
        found = dict(await client.incident(name) or {})
        if not found:
            raise Refused(f"the incident {name} does not exist")
        redirected = text(found, "redirectIncidentId")
        if redirected is None:
            return INCIDENTS, {**found, "id": name}
        name = redirected
    raise Refused(f"incident {name} was merged more than {_MAX_MERGES} times")
