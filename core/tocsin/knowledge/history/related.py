"""Incidents related to an incident, with the reasons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from tocsin.model import Entity, IncidentStatus, Severity, Sighting
from tocsin.store import is_in
from tocsin.store.tables import incident_labels, incidents

MAX_RELATED = 10
"""Number of related incidents that are returned, those with the rarest shared entities first."""
_SHOWN = ("number", "title", "severity", "status", "occurred_at")
_i, _own, _l = incidents.c, incidents.alias("own").c, incident_labels.c
_about = select(*(_i[name] for name in _SHOWN)).where(is_in(_i.number, "numbers"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedIncident:
    """An incident that has something in common with another."""

    number: int
    title: str
    severity: Severity
    status: IncidentStatus
    occurred_at: datetime
    is_linked: bool
    """Whether somebody has linked the two."""
    is_merged: bool
    """Whether the SIEM has merged one into the other."""
    shared: tuple[Entity, ...]
    """The entities that both involve, the rarest first."""


def find_related_incidents(
    connection: Connection, number: int, sightings: Iterable[Sighting]
) -> list[RelatedIncident]:
    """Return incidents related to an incident, given the sightings of its entities.

    Linked and merged incidents come first. The others share entities, of which only the latest ten
    incidents each are considered; well-known entities relate nothing.
    """
    linked, merged = _load_linked(connection, number), _load_merged(connection, number)
    shared: dict[int, list[Sighting]] = defaultdict(list)
    for sighting in sorted(sightings, key=lambda each: each.incident_count):
        for other in () if sighting.well_known else sighting.recent:
            shared[other].append(sighting)
    weights = {other: _weigh(each) for other, each in shared.items()}
    candidates = sorted(
        ({*linked, *merged, *shared}) - {number},
        key=lambda other: (other in linked, other in merged, weights.get(other, 0), other),
        reverse=True,
    )[:MAX_RELATED]
    rows = connection.execute(_about, {"numbers": candidates}).mappings()
    found = {row["number"]: row for row in rows}
    return [
        RelatedIncident(
            **{
                **found[other],
                "severity": Severity(found[other]["severity"]),
                "status": IncidentStatus(found[other]["status"]),
            },
            is_linked=other in linked,
            is_merged=other in merged,
            shared=tuple(sighting.entity for sighting in shared.get(other, ())),
        )
        for other in candidates
        if other in found
    ]


def _weigh(shared: Sequence[Sighting]) -> float:
    """Return how much shared entities relate two incidents: rare ones more than common ones."""
    return sum(1 / max(1, sighting.incident_count) for sighting in shared)


def _load_linked(connection: Connection, number: int) -> set[int]:
    query = select(_l.value).where(_l.incident_number == number, _l.kind == "link")
    return {int(value) for value in connection.scalars(query)}


def _load_merged(connection: Connection, number: int) -> set[int]:
    """Return the incident that an incident was merged into, and the latest merged into it."""
    rows = (
        select(_i.number)
        .where(_own.number == number, _i.provider == _own.provider, is_merged)
        .order_by(_i.number.desc())
        .limit(MAX_RELATED)
        for is_merged in (_i.merged_into == _own.external_id, _i.external_id == _own.merged_into)
    )
    return {found for query in rows for found in connection.scalars(query)}
