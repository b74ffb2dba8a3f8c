"""Values and entities of indexed documents, and queries for entities."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from tocsin import Entity, EntityKind, parse_json
from tocsin_connectors.siem.entities import contains_entity, parse_entities
from tocsin_connectors.siem.records import normalize_address

MAX_DOCUMENT_LENGTH = 1_000_000
# https://www.elastic.co/docs/reference/ecs/ecs-field-reference
_ECS_FIELDS = {
    EntityKind.USER: ("user.target.name", "user.effective.name"),
    EntityKind.HOST: ("related.hosts",),
}


def value_at(document: Any, place: str) -> Any:
    """Return what stands at a place such as `source.ip`, None where there is nothing.

    Documents have nested objects, dotted names, and both at once.
    """
    if not isinstance(document, dict):
        return None
    if place in document:
        return document[place]
    parts = place.split(".")
    for length in range(len(parts) - 1, 0, -1):
        head, tail = ".".join(parts[:length]), ".".join(parts[length:])
        if head in document and (found := value_at(document[head], tail)) is not None:
            return found
    return None


def text_at(document: Any, *places: str) -> str | None:
    """Return the text or number, as text, at the first of some places that has one."""
    for place in places:
        for value in scalars(value_at(document, place)):
            if text := str(value).replace("\0", "").strip():
                return text[:4096]
    return None


def scalars(value: Any) -> Iterator[str | int]:
    """Yield the texts and numbers that a value is, or that are in its list."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str | int) and not isinstance(item, bool):
            yield item


def find_ecs_entities(document: Any) -> Iterator[Entity]:
    """Yield what a document names in fields whose names say by themselves not of what kind it is.

    `find_in_record` passes over them.
    """
    for kind, places in _ECS_FIELDS.items():
        for place in places:
            for value in scalars(value_at(document, place)):
                yield from parse_entities(kind, str(value))


def decode_object(value: Any) -> dict[str, Any] | None:
    """Return the object that a value is or, as JSON, spells; None where it does neither."""
    if isinstance(value, str) and len(value) <= MAX_DOCUMENT_LENGTH:
        with suppress(ValueError, UnicodeError):
            value = parse_json(value.encode())
    return value if isinstance(value, dict) else None


def summarize_document(document: Any) -> str:
    """Return a document as a line to be read, cut where it is long."""
    return " ".join(json.dumps(document, ensure_ascii=False, default=str).split())[:300]


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
    found = (Entity(asked.kind, str(scalar)) for value in told for scalar in scalars(value))
    return (asked, *entities) if contains_entity(asked, found) else None
