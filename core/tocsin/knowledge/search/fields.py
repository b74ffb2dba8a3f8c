"""Fields that narrow a search: `severity:high`, `ip:192.0.2.1`, `before:2026-01-01`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime

from tocsin.model import (
    EntityKind,
    IncidentStatus,
    Persona,
    SessionStatus,
    Severity,
    Verdict,
)

KINDS = ("incident", "session")
MOMENTS = ("before", "after")
CLOSED: Mapping[str, tuple[str, ...]] = {
    "kind": KINDS,
    "severity": tuple(Severity),
    "status": (*IncidentStatus, *SessionStatus),
    "verdict": tuple(Verdict),
    "persona": tuple(Persona),
}
"""Fields with a closed list of values."""
_OPEN = ("provider", "technique", "id")
_SHORT = {EntityKind.FILE_HASH: "hash"}


def entity_field(kind: EntityKind) -> str:
    """Return the search field for entities of a kind."""
    return _SHORT.get(kind, kind.value)


_ENTITIES = tuple(map(entity_field, EntityKind))
_OTHER_NAMES = {kind.value: name for kind, name in _SHORT.items()}
FIELDS = (*CLOSED, *_OPEN, *MOMENTS, *_ENTITIES)


def find_field(name: str) -> str | None:
    """Return the field of this name, ignoring case; None if there is none."""
    folded = name.lower()
    folded = _OTHER_NAMES.get(folded, folded)
    return folded if folded in FIELDS else None


def parse_closed_value(field: str, value: str) -> str:
    """Return a field's value as it is indexed. Raises ValueError with the valid values."""
    valid = CLOSED.get(field)
    if valid is None:
        return value
    folded = value.casefold()
    if folded not in map(str.casefold, valid):
        raise ValueError(f"{field} must be one of: {', '.join(dict.fromkeys(valid))}")
    return folded


def parse_bound(text: str) -> datetime:
    """Return the start of a day in UTC, or a moment. Raises ValueError for anything else."""
    wrong = "use a day such as 2026-01-31, or a time such as 2026-01-31T08:00:00Z"
    try:
        if len(text) == len("2026-01-31"):
            return datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(wrong) from None
    if parsed.tzinfo is None:
        raise ValueError(f"{wrong}, with a time zone")
    return parsed.astimezone(UTC)
