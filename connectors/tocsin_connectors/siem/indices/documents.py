"""Taking apart what was found: documents that are nested, dotted, or spelt as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from tocsin import Entity, EntityKind, parse_json
from tocsin_connectors.siem.typed import parse_entities

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
