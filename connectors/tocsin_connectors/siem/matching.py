"""Whether what came of a search has what was asked for."""

from __future__ import annotations

from collections.abc import Iterable

from tocsin import Entity


def contains_entity(entity: Entity, entities: Iterable[Entity]) -> bool:
    """Return whether an entity is among others, in capitals or not: searches know no case."""
    value = entity.value.casefold()
    return any(it.kind is entity.kind and it.value.casefold() == value for it in entities)
