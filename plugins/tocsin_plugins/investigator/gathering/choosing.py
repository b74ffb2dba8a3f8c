"""What is looked at first, and what is not followed."""

from __future__ import annotations

from collections.abc import Iterable

from tocsin import Disposition, Entity
from tocsin_plugins.investigator.case import Case
from tocsin_plugins.investigator.seen import entity_sort_key

_RANKS = {disposition: rank for rank, disposition in enumerate(Disposition)}


def sort_by_priority(case: Case, entities: Iterable[Entity]) -> list[Entity]:
    """Return entities, the most telling first.

    What sources call bad comes first, then what several incidents have in common, what is seldom
    seen, and what is not ours.
    """
    return sorted(entities, key=lambda entity: _priority(case, entity))


def _priority(case: Case, entity: Entity) -> tuple[object, ...]:
    sighting = case.find_sighting(entity)
    return (
        _RANKS[case.find_disposition(entity)],
        -len(case.incidents_with(entity)),
        sighting.incident_count,
        sighting.internal,
        entity_sort_key(entity),
    )


def is_pivot(case: Case, entity: Entity) -> bool:
    """Return whether what has to do with an entity is looked for.

    What is well known is not followed, nor what is internal and in very many incidents, unless it
    was asked for by name.
    """
    return entity in case.scope.entities or case.connects(entity)
