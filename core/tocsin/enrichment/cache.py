"""Cache of enrichments: their age, and comparison with earlier ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection, bindparam, select

from tocsin.knowledge.graph import ObservedRelation, record_relations
from tocsin.model import Enrichment, Entity, EntityKind, Marking, Node, Relation, Vocabulary
from tocsin.store import build_insert
from tocsin.store.tables import enrichments

MAX_STALENESS = timedelta(days=7)
"""Time after expiry in which an enrichment is used if its enricher is unavailable."""
_ENRICHMENT = TypeAdapter(Enrichment)
_AT_ONCE = 500
_e = enrichments.c
_kept = select(
    *(_e.enricher, _e.kind, _e.value, _e.content, _e.fetched_at, _e.changed_at, _e.expires_at)
).where(
    _e.enricher.in_(bindparam("enrichers", expanding=True)),
    _e.kind == bindparam("kind"),
    _e.value.in_(bindparam("values", expanding=True)),
)


class EnrichmentDifference(Vocabulary):
    """Comparison of an enrichment with the previous one."""

    NEW = "new"
    DIFFERENT = "different"
    SAME = "same"
    GONE = "gone"
    """Something was known before, and nothing is now."""


@dataclass(frozen=True, slots=True)
class CachedEnrichment:
    """Latest enrichment of an entity by one enricher."""

    enrichment: Enrichment | None
    """None if nothing was known."""
    fetched_at: datetime
    changed_at: datetime
    expires_at: datetime | None

    def is_fresh(self, now: datetime) -> bool:
        """Return whether it is used without a new request to the enricher."""
        return self.expires_at is not None and now < self.expires_at

    def is_usable_if_unavailable(self, now: datetime) -> bool:
        """Return whether it is used if the enricher is unavailable."""
        return self.expires_at is not None and now < self.expires_at + MAX_STALENESS


def look_up_enrichments(
    connection: Connection, enricher: str, entities: Collection[Entity]
) -> dict[Entity, CachedEnrichment]:
    """Return the cached enrichments of these entities; others are left out."""
    return load_enrichments(connection, [enricher], entities)[enricher]


def load_enrichments(
    connection: Connection, enrichers: Sequence[str], entities: Collection[Entity]
) -> dict[str, dict[Entity, CachedEnrichment]]:
    """Return the cached enrichments of these entities by enricher; others are left out."""
    found: dict[str, dict[Entity, CachedEnrichment]] = {name: {} for name in enrichers}
    for kind, values in _by_kind(entities):
        parameters = {"enrichers": enrichers, "kind": kind, "values": values}
        for row in connection.execute(_kept, parameters):
            entity = Entity(EntityKind(row.kind), row.value)
            with suppress(ValidationError):  # written by another version of the service
                reply = None if row.content is None else _from_content(entity, row.content)
                found[row.enricher][entity] = CachedEnrichment(
                    reply, row.fetched_at, row.changed_at, row.expires_at
                )
    return found


def _by_kind(entities: Collection[Entity]) -> Iterator[tuple[EntityKind, list[str]]]:
    values = defaultdict(list)
    for entity in entities:
        values[entity.kind].append(entity.value)
    for kind, several in values.items():
        for start in range(0, len(several), _AT_ONCE):
            yield kind, several[start : start + _AT_ONCE]


def store_enrichments(
    connection: Connection,
    enricher: str,
    answers: Mapping[Entity, Enrichment | None],
    now: datetime,
    expires_at: datetime | None,
    *,
    markings: Mapping[Entity, Marking] = MappingProxyType({}),
) -> dict[Entity, EnrichmentDifference]:
    """Store enrichments, and return their differences; none if nothing is or was known.

    New relations go into the graph with the marking of their entity. An enrichment that never
    expires is written only if it differs.
    """
    before = look_up_enrichments(connection, enricher, answers)
    differences: dict[Entity, EnrichmentDifference] = {}
    rows: list[dict[str, Any]] = []
    news: list[ObservedRelation] = []
    for entity, answer in answers.items():
        kept = before.get(entity)
        previous = kept.enrichment if kept else None
        if difference := _compare(previous, answer):
            differences[entity] = difference
        if expires_at or answer != previous:
            row = {
                "enricher": enricher,
                "kind": entity.kind.value,
                "value": entity.value,
                "content": _content(answer),
                "fetched_at": now,
                "changed_at": kept.changed_at if kept and answer == previous else now,
                "expires_at": expires_at,
            }
            rows.append(row)
            marking = markings.get(entity, Marking())
            news += (
                _seen(relation, now, marking) for relation in _find_new_relations(previous, answer)
            )
    _upsert(connection, rows)
    if news:
        record_relations(connection, {f"enricher:{enricher}": news})
    return differences


def _compare(previous: Enrichment | None, answer: Enrichment | None) -> EnrichmentDifference | None:
    if previous is None:
        return EnrichmentDifference.NEW if answer else None
    if answer is None:
        return EnrichmentDifference.GONE
    return EnrichmentDifference.SAME if answer == previous else EnrichmentDifference.DIFFERENT


def _find_new_relations(
    previous: Enrichment | None, answer: Enrichment | None
) -> Sequence[Relation]:
    """Return the relations that are new."""
    known = previous.relations if previous else ()
    return [relation for relation in (answer.relations if answer else ()) if relation not in known]


def _seen(relation: Relation, now: datetime, marking: Marking) -> ObservedRelation:
    source, target = Node.of(relation.source), Node.of(relation.target)
    return ObservedRelation(source, relation.type, target, relation.at or now, marking)


def _content(answer: Enrichment | None) -> Any:
    return answer and _ENRICHMENT.dump_python(answer, mode="json", exclude={"entity"})


def _from_content(entity: Entity, content: Mapping[str, Any]) -> Enrichment:
    about = {"kind": entity.kind, "value": entity.value}
    return _ENRICHMENT.validate_python({**content, "entity": about})


def _upsert(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    if not rows:
        return
    statement = build_insert(connection, enrichments)
    new = statement.excluded
    columns = ("content", "fetched_at", "changed_at", "expires_at")
    # the same order everywhere avoids deadlocks
    ordered = sorted(rows, key=lambda row: (row["kind"], row["value"]))
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=enrichments.primary_key,
            set_={name: new[name] for name in columns},
        ),
        ordered,
    )
