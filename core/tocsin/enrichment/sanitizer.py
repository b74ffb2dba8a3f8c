"""Sanitization of enricher results: bounded, clean, and limited to the request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from urllib.parse import urlsplit

import orjson

from tocsin.hookspecs import Enricher
from tocsin.model import Disposition, Enrichment, Entity, Json, Relation
from tocsin.plugin_results import describe_method, require_result
from tocsin.store import clean_text

SUMMARY = 1_000
WORD = 200
WORDS = 50
TEXT = 2_000
LINK = 2_048
RELATIONS = 200
FACTS = 16 * 1024
"""Maximum size of the facts of one enrichment, as JSON, in bytes."""
ENTITY_BYTES = 2_000
"""Maximum length of a stored entity value, in bytes."""

_DEPTH = 6
_INTEGERS = range(-(2**63), 2**63)
_TECHNIQUE = re.compile(r"T\d{4}(\.\d{3})?", re.IGNORECASE | re.ASCII)


def is_storable(entity: Entity) -> bool:
    """Return whether both databases store the value unchanged, also in an index."""
    value = entity.value
    return bool(value) and clean_text(value, TEXT) == value and len(value.encode()) <= ENTITY_BYTES


def sanitize_enrichments(
    returned: object, asked: Sequence[Entity], method: Callable[..., object] = Enricher.enrich
) -> dict[Entity, Enrichment | None]:
    """Return each entity's enrichment, in order; None if nothing is known of it.

    `method` is what returned them.

    Enrichments of other entities are dropped, as are duplicates and excessive ones. Raises
    TypeError or ValueError, with a message for the enricher's author, for anything that is not an
    enrichment.
    """
    found: dict[Entity, Enrichment] = {}
    wanted = frozenset(asked)
    for returned_item in islice(_sequence(returned, method), 2 * len(asked)):
        item = require_result(returned_item, Enrichment, method)
        if item.entity in wanted:
            found.setdefault(item.entity, _clean(item))
    return {entity: found.get(entity) for entity in asked}


def _sequence(returned: object, method: Callable[..., object]) -> Sequence[object]:
    if isinstance(returned, Sequence) and not isinstance(returned, str | bytes):
        return returned
    raise TypeError(f"{describe_method(method)} returned {returned!r:.100}, not a list")


def _clean(enrichment: Enrichment) -> Enrichment:
    return replace(
        enrichment,
        summary=clean_text(" ".join(str(enrichment.summary).split()), SUMMARY),
        disposition=Disposition(enrichment.disposition),
        score=None if enrichment.score is None else min(max(round(enrichment.score), 0), 100),
        tags=_words(enrichment.tags),
        techniques=_techniques(enrichment.techniques),
        relations=_relations(enrichment.relations),
        facts=_facts(enrichment.facts),
        link=_link(enrichment.link),
    )


def _words(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(clean_text(str(word), WORD) for word in words if word))[:WORDS]


def _techniques(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.upper() for name in _words(names) if _TECHNIQUE.fullmatch(name))


def _relations(relations: Iterable[Relation]) -> tuple[Relation, ...]:
    return tuple(filter(_is_sound, dict.fromkeys(relations)))[:RELATIONS]


def _is_sound(relation: Relation) -> bool:
    is_dated = relation.at is None or relation.at.tzinfo is not None
    return is_dated and is_storable(relation.source) and is_storable(relation.target)


def _facts(facts: Mapping[str, Json]) -> dict[str, Json]:
    """Return the facts that fit, in order."""
    kept: dict[str, Json] = {}
    room = FACTS
    for name, value in facts.items():
        fact = {clean_text(str(name), WORD): clean_json(value)}
        room -= len(orjson.dumps(fact))
        if room < 0:
            break
        kept |= fact
    return kept


def clean_json(value: Json, depth: int = _DEPTH) -> Json:
    """Return JSON that both databases return unchanged, bounded in depth and text.

    JSONB has no exponents and no -0.0: it returns 1e16 as an integer, SQLite does not.
    """
    match value:
        case None | bool():
            return value
        case int():
            return value if value in _INTEGERS else str(value)
        case float():
            whole = value.is_integer() and int(value) in _INTEGERS
            return int(value) if whole else value if abs(value) < float("inf") else None
        case Mapping() if depth:
            return {clean_text(str(k), WORD): clean_json(v, depth - 1) for k, v in value.items()}
        case list() | tuple() if depth:
            return [clean_json(item, depth - 1) for item in value]
        case _:
            return clean_text(str(value), TEXT)


def _link(link: str | None) -> str | None:
    """Return a web address; None for anything else, such as a script."""
    if not isinstance(link, str) or len(link) > LINK or not link.isprintable():
        return None
    try:
        parts = urlsplit(link)
    except ValueError:
        return None
    return link if parts.scheme in ("http", "https") and parts.hostname else None
