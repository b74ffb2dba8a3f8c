"""Write-back to detections: comments and status, both as feedback."""

from __future__ import annotations

from tocsin import IncidentStatus, Refused
from tocsin_connectors.siem.idempotency_marker import add_marker, has_marker, read_comments
from tocsin_connectors.siem.records import child, children, text
from tocsin_connectors.siem.secops.client import SecOpsClient, SecOpsRecord
from tocsin_connectors.siem.secops.mapping import STATUS_WORDS, parse_status


async def comment(chronicle: SecOpsClient, identifier: str, message: str, key: str) -> None:
    """Write a comment, unless a comment with this key exists.

    Feedback has no keys, so each comment ends with a marker of its key, which is searched for in
    all previous feedback.
    """
    found = await _existing(chronicle, identifier)
    given = [child(found, "feedbackSummary"), *children(found, "feedbackHistory")]
    if not has_marker(key, read_comments(given, "comment")):
        await chronicle.update(identifier, {"comment": add_marker(message, key)})


async def set_status(chronicle: SecOpsClient, identifier: str, status: IncidentStatus) -> None:
    """Set where a detection stands; one that stands there already is left alone."""
    found = await _existing(chronicle, identifier)
    if parse_status(text(child(found, "feedbackSummary"), "status")) is not status:
        await chronicle.update(identifier, {"status": STATUS_WORDS[status]})


async def _existing(chronicle: SecOpsClient, identifier: str) -> SecOpsRecord:
    """Return the current detection. Raises `Refused` if it does not exist."""
    found = await chronicle.alert(identifier)
    if found is None:
        raise Refused(f"the alert {identifier} does not exist")
    return found
