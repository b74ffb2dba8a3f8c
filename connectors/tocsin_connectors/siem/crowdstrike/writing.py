"""Write-back to alerts: comments and status."""

from __future__ import annotations

from tocsin import IncidentStatus, Refused
from tocsin_connectors.siem.crowdstrike.client import FalconClient, FalconRecord
from tocsin_connectors.siem.crowdstrike.mapping import STATUS_WORDS, STATUSES
from tocsin_connectors.siem.idempotency_marker import add_marker, has_marker, read_comments
from tocsin_connectors.siem.records import children, text


async def comment(falcon: FalconClient, identifier: str, message: str, key: str) -> None:
    """Write a comment, unless a comment with this key exists.

    Comments have no keys, so each ends with a marker of its key.
    """
    found = await _existing(falcon, identifier)
    if not has_marker(key, read_comments(children(found, "comments"), "value")):
        await falcon.change([identifier], {"append_comment": add_marker(message, key)})


async def set_status(falcon: FalconClient, identifier: str, status: IncidentStatus) -> None:
    """Set the status of an alert, unless it has that status already."""
    found = await _existing(falcon, identifier)
    if STATUSES.get((text(found, "status") or "").casefold()) is not status:
        await falcon.change([identifier], {"update_status": STATUS_WORDS[status]})


async def _existing(falcon: FalconClient, identifier: str) -> FalconRecord:
    """Return the current alert. Raises `Refused` if it does not exist."""
    found = await falcon.alert(identifier)
    if found is None:
        raise Refused(f"the alert {identifier} does not exist")
    return found
