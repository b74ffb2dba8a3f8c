"""What the answers of a run tell the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tocsin.model import (
    Enrichment,
    Entity,
    FindEvents,
    FoundEvents,
    GetEnrichments,
    Marking,
    Question,
    Relation,
    find_marking,
)


@dataclass(frozen=True, slots=True)
class RelationReport:
    """A relation that an answer tells of."""

    relation: Relation
    at: datetime
    """When it was so; when it was asked for, where that is not told."""
    by: str | Marking = Marking()  # noqa: RUF009 - it cannot change
    """The provider that tells it; of an enrichment, how what it was asked for is marked."""

    def marking(self, markings: Mapping[str, Marking]) -> Marking:
        """Return how it is marked, by how each provider's are."""
        return self.by if isinstance(self.by, Marking) else find_marking(self.by, markings)


def find_reported_relations(
    question: Question[Any], content: Any, asked_at: datetime
) -> list[RelationReport]:
    """Return the relations that an answer tells of; those of events and enrichments do."""
    if isinstance(question, FindEvents) and isinstance(content, FoundEvents):
        return [
            RelationReport(it, it.at or event.occurred_at, question.provider)
            for event in content.events
            for it in event.relations
        ]
    if isinstance(question, GetEnrichments) and content is not None:
        return [
            RelationReport(it, it.at or asked_at, question.marking)
            for it in _enrichment_relations(content)
        ]
    return []


def _enrichment_relations(enrichments: tuple[Enrichment, ...]) -> Iterator[Relation]:
    for enrichment in enrichments:
        yield from enrichment.relations


def find_named_entities(content: FoundEvents) -> Iterator[Entity]:
    """Yield the entities that events name."""
    for event in content.events:
        yield from event.entities
        for relation in event.relations:
            yield from (relation.source, relation.target)
