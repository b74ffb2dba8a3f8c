"""Writing to alerts of Falcon: comments, and where an alert stands."""

from __future__ import annotations

from tocsin import IncidentStatus, Refused
from tocsin_connectors.siem.crowdstrike.client import FalconClient, FalconRecord
from tocsin_connectors.siem.crowdstrike.mapping import STATUS_WORDS, STATUSES
from tocsin_connectors.siem.idempotency_marker import add_marker, has_marker, read_comments
from tocsin_connectors.siem.records import children, text


async def comment(falcon: FalconClient, identifier: str, message: str, key: str) -> None:
    """Write a comment once for its key.

    Comments of Falcon have no keys: so each ends with a mark, and one that ends with the mark of
    this key is looked for before.
    """
    found = await _existing(falcon, identifier)
    if not has_marker(key, read_comments(children(found, "comments"), "value")):
        await falcon.change([identifier], {"append_comment": add_marker(message, key)})


async def set_status(falcon: FalconClient, identifier: str, status: IncidentStatus) -> None:
    """Set where an alert stands; one that stands there already is left alone."""
    found = await _existing(falcon, identifier)
    if STATUSES.get((text(found, "status") or "").casefold()) is not status:
        await falcon.change([identifier], {"update_status": STATUS_WORDS[status]})


async def _existing(falcon: FalconClient, identifier: str) -> FalconRecord:
    """Return the alert as it is now; `Refused` where there is none."""
    found = await falcon.alert(identifier)
    if found is None:
        raise Refused(f"there is no alert {identifier}")
    return found
