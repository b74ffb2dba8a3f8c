"""Moments in fields: people write them without a zone, and mean UTC there, as the label says."""

from __future__ import annotations

from datetime import UTC, datetime


def to_utc(text: str) -> str:
    """Return a moment with its zone, UTC where it has none; what is no moment as it is."""
    try:
        moment = datetime.fromisoformat(text)
        in_utc = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):  # the latter before the year 1 and after 9999
        return text
    return in_utc.replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def to_field(text: str) -> str:
    """Return a moment as a field has it: in UTC, without saying so (HTML, `datetime-local`)."""
    return to_utc(text).removesuffix("Z")
