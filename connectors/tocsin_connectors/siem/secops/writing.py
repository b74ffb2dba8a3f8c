"""Writing to detections: comments, and where a detection stands, both as feedback."""

from __future__ import annotations

from tocsin import IncidentStatus, Refused
from tocsin_connectors.siem.comments import comments_in
from tocsin_connectors.siem.marks import is_written, marked
from tocsin_connectors.siem.records import child, children, text
from tocsin_connectors.siem.secops.chronicle import Chronicle, Record
from tocsin_connectors.siem.secops.words import WORDS, status_of


async def comment(chronicle: Chronicle, identifier: str, message: str, key: str) -> None:
    """Write a comment once for its key.

    Feedback has no keys: so each comment ends with a mark, and one that ends with the mark of this
    key is looked for before, in all the feedback that was ever given.
    """
    found = await _existing(chronicle, identifier)
    given = [child(found, "feedbackSummary"), *children(found, "feedbackHistory")]
    if not is_written(key, comments_in(given, "comment")):
        await chronicle.update(identifier, {"comment": marked(message, key)})


async def set_status(chronicle: Chronicle, identifier: str, status: IncidentStatus) -> None:
    """Set where a detection stands; one that stands there already is left alone."""
    found = await _existing(chronicle, identifier)
    if status_of(text(child(found, "feedbackSummary"), "status")) is not status:
        await chronicle.update(identifier, {"status": WORDS[status]})


async def _existing(chronicle: Chronicle, identifier: str) -> Record:
    """Return the detection as it is now; `Refused` where there is none."""
    found = await chronicle.alert(identifier)
    if found is None:
        raise Refused(f"there is no alert {identifier}")
    return found
