"""Where on the console that stands which a sentence is known from."""

from __future__ import annotations


def link_to_reference(session_id: str, reference: str) -> str | None:
    """Return the path of what `step:12` or `incident:7` names; None for what has no page."""
    kind, _, number = reference.partition(":")
    if not (number.isascii() and number.isdigit()):
        return None
    match kind:
        case "step":
            return f"/investigations/{session_id}/steps/{number}"
        case "incident":
            return f"/incidents/{number}"
    return None
