"""Writing to alerts of Falcon: comments, and where an alert stands."""

from __future__ import annotations

from tocsin import IncidentStatus, Refused
from tocsin_connectors.siem.comments import comments_in
from tocsin_connectors.siem.crowdstrike.falcon import Falcon, Record
from tocsin_connectors.siem.crowdstrike.words import STATUSES, WORDS
from tocsin_connectors.siem.marks import is_written, marked
from tocsin_connectors.siem.records import children, text


async def comment(falcon: Falcon, identifier: str, message: str, key: str) -> None:
    """Write a comment once for its key.

    Comments of Falcon have no keys: so each ends with a mark, and one that ends with the mark of
    this key is looked for before.
    """
    found = await _existing(falcon, identifier)
    if not is_written(key, comments_in(children(found, "comments"), "value")):
        await falcon.change([identifier], {"append_comment": marked(message, key)})


async def set_status(falcon: Falcon, identifier: str, status: IncidentStatus) -> None:
    """Set where an alert stands; one that stands there already is left alone."""
    found = await _existing(falcon, identifier)
    if STATUSES.get((text(found, "status") or "").casefold()) is not status:
        await falcon.change([identifier], {"update_status": WORDS[status]})


async def _existing(falcon: Falcon, identifier: str) -> Record:
    """Return the alert as it is now; `Refused` where there is none."""
    found = await falcon.alert(identifier)
    if found is None:
        raise Refused(f"there is no alert {identifier}")
    return found
