"""Searching for what names an entity, and whether it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tocsin import Entity, EntityKind
from tocsin_connectors.siem.indices.documents import scalars, value_at
from tocsin_connectors.siem.matching import contains_entity
from tocsin_connectors.siem.records import normalize_address

EntityFields = Mapping[EntityKind, Sequence[str]]
"""Where documents name entities of a kind."""


def build_entity_query(entity: Entity, fields: EntityFields) -> dict[str, Any] | None:
    """Return the clause for what names an entity; None where nothing can.

    The value is a term of its own, never part of a query's text. Of an address, only one that is
    one: fields of the type `ip` take a network for all that is in it.
    """
    names = fields.get(entity.kind, ())
    value: str | None = entity.value
    options: dict[str, Any] = {"case_insensitive": True}
    if entity.kind is EntityKind.IP:  # whose fields know no case, and refuse to be told of it
        value, options = normalize_address(entity.value), {}
    if not names or not value:
        return None
    terms = [{"term": {name: {"value": value, **options}}} for name in names]
    return {"bool": {"should": terms, "minimum_should_match": 1}}


def include_queried_entity(
    entities: Sequence[Entity], asked: Entity, document: Any, fields: EntityFields
) -> tuple[Entity, ...] | None:
    """Return the entities of a document, among them the one that it was found by.

    What some fields are called says nothing by itself, such as `syscheck.uname_after`: it is put
    before the others there. None where the document does not have it after all.
    """
    if contains_entity(asked, entities):
        return tuple(entities)
    told = (value_at(document, place) for place in fields.get(asked.kind, ()))
    found = (Entity(asked.kind, str(it)) for value in told for it in scalars(value))
    return (asked, *entities) if contains_entity(asked, found) else None
