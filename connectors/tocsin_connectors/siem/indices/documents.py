"""Values and entities of indexed documents, and queries for entities."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from tocsin import Entity, EntityKind, parse_json
from tocsin_connectors.siem.records import (
    contains_entity,
    normalize_address,
    scalars,
    value_at,
)

MAX_DOCUMENT_LENGTH = 1_000_000


def decode_object(value: Any) -> dict[str, Any] | None:
    """Return an object, parsed if it is JSON in a string; None for anything else."""
    if isinstance(value, str) and len(value) <= MAX_DOCUMENT_LENGTH:
        with suppress(ValueError, UnicodeError):
            value = parse_json(value.encode())
    return value if isinstance(value, dict) else None


def summarize_document(document: Any) -> str:
    """Return a document as one line, truncated."""
    return " ".join(json.dumps(document, ensure_ascii=False, default=str).split())[:300]


EntityFields = Mapping[EntityKind, Sequence[str]]
"""Fields that hold entities, by kind."""


def build_entity_query(entity: Entity, fields: EntityFields) -> dict[str, Any] | None:
    """Return the query for documents that name an entity, or None if no field can.

    The value is a term of its own, never part of a query string. An IP address must be valid:
    fields of the type `ip` would accept a network.
    """
    names = fields.get(entity.kind, ())
    value: str | None = entity.value
    options: dict[str, Any] = {"case_insensitive": True}
    if entity.kind is EntityKind.IP:  # fields of the type `ip` reject `case_insensitive`
        value, options = normalize_address(entity.value), {}
    if not names or not value:
        return None
    terms = [{"term": {name: {"value": value, **options}}} for name in names]
    return {"bool": {"should": terms, "minimum_should_match": 1}}


def include_queried_entity(
    entities: Sequence[Entity], asked: Entity, document: Any, fields: EntityFields
) -> tuple[Entity, ...] | None:
    """Return the entities of a document, including the queried one.

    The name of a field such as `syscheck.uname_after` does not reveal its kind, so the queried
    entity is put first. Returns None if the document does not name it.
    """
    if contains_entity(asked, entities):
        return tuple(entities)
    values = (value_at(document, path) for path in fields.get(asked.kind, ()))
    found = (Entity(asked.kind, str(scalar)) for value in values for scalar in scalars(value))
    return (asked, *entities) if contains_entity(asked, found) else None
