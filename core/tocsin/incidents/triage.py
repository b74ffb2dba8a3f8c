"""Triage of incidents as it is stored: who works on an incident, and what it turned out to be."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, exists, select

from tocsin.clock import isoformat_or_none
from tocsin.model import DispositionFilter
from tocsin.store import is_in
from tocsin.store.tables import incident_labels, incident_triage, incidents


class LabelKind(StrEnum):
    """Kind of a label of an incident."""

    TAG = "tag"
    LINK = "link"
    WATCHER = "watcher"


_NONE = DispositionFilter.NONE
"""As a filter: incidents without an assignee, or without a disposition."""
MEMBERS = {
    LabelKind.TAG: "tags",
    LabelKind.LINK: "linked_incidents",
    LabelKind.WATCHER: "watchers",
}
"""The member of the JSON with the labels of a kind."""
COLUMNS = (
    *("assignee", "acknowledged_by", "acknowledged_at"),
    *("disposition", "disposition_reason", "disposition_source"),
    *("disposition_by", "disposition_at", "comment_count"),
)
"""The columns in the JSON, in its order."""
_MOMENTS = ("acknowledged_at", "disposition_at")
Triage = Mapping[str, Any]
"""The JSON of an incident's triage."""
UNTRIAGED: Triage = {
    **dict.fromkeys(COLUMNS),
    "comment_count": 0,
    **dict.fromkeys(MEMBERS.values(), ()),
}
"""The triage of an incident for which none is stored."""
_t, _l = incident_triage.c, incident_labels.c
_rows = select(_t.incident_number, *(_t[name] for name in COLUMNS)).where(
    is_in(_t.incident_number, "numbers")
)
_labels = select(_l.incident_number, _l.kind, _l.value).where(is_in(_l.incident_number, "numbers"))


def load_triage(connection: Connection, numbers: Collection[int]) -> dict[int, dict[str, Any]]:
    """Return the JSON of the triage of these incidents; none for those never triaged."""
    rows = connection.execute(_rows, {"numbers": list(numbers)}).mappings().all()
    found: dict[int, dict[str, Any]] = {}
    for row in rows:
        shown: dict[str, Any] = {name: row[name] for name in COLUMNS}
        shown |= {name: isoformat_or_none(row[name]) for name in _MOMENTS}
        found[row["incident_number"]] = shown | {member: [] for member in MEMBERS.values()}
    if found:
        for number, kind, value in connection.execute(_labels, {"numbers": list(found)}):
            found[number][MEMBERS[LabelKind(kind)]].append(value)
        for shown in found.values():
            shown |= {member: sort_labels(kind, shown[member]) for kind, member in MEMBERS.items()}
    return found


def sort_labels(kind: LabelKind, values: Iterable[str]) -> list[Any]:
    """Return labels as in the JSON: sorted alike for every database, and links as numbers."""
    return sorted(map(int, values)) if kind is LabelKind.LINK else sorted(values)


@dataclass(frozen=True, slots=True)
class TriageFilter:
    """Conditions for incidents by their triage; None for any."""

    assignee: str | None = None
    disposition: str | None = None
    acknowledged: bool | None = None
    tag: str | None = None
    watcher: str | None = None

    def list_conditions(self) -> Iterator[ColumnElement[bool]]:
        """Yield the conditions for rows of `incidents`."""
        for column, wanted in ((_t.assignee, self.assignee), (_t.disposition, self.disposition)):
            if wanted == _NONE:
                yield ~_has_triage(column.is_not(None))
            elif wanted is not None:
                yield _has_triage(column == wanted)
        if self.acknowledged is not None:
            is_acknowledged = _has_triage(_t.acknowledged_at.is_not(None))
            yield is_acknowledged if self.acknowledged else ~is_acknowledged
        for kind, value in ((LabelKind.TAG, self.tag), (LabelKind.WATCHER, self.watcher)):
            if value is not None:
                is_such = (_l.kind == kind.value, _l.value == value)
                yield incidents.c.number.in_(select(_l.incident_number).where(*is_such))


def _has_triage(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    return exists().where(_t.incident_number == incidents.c.number, condition)
