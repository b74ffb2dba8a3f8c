"""Citations in reports and answers, and the relations that answers report to the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tocsin.model import (
    Edge,
    Entity,
    FindEvents,
    FoundEvents,
    GetEnrichments,
    IncidentRecord,
    Marking,
    Match,
    Neighborhood,
    NodeKind,
    Question,
    Relation,
    Report,
    Sighting,
    find_marking,
)
from tocsin.reports import to_json


def collect_citations(report: Report) -> set[str]:
    """Return the references that a report cites, such as `step:12` and `incident:7`."""
    return set(_walk_evidence(to_json(report)))


def collect_citable(report: Report) -> set[str]:
    """Return the references that a session may cite after this report."""
    return collect_citations(report) | {f"incident:{number}" for number in report.incidents}


def _walk_evidence(part: Any) -> Iterator[str]:
    match part:
        case dict():
            yield from part.get("evidence", ())
            for member in part.values():
                yield from _walk_evidence(member)
        case list():
            for item in part:
                yield from _walk_evidence(item)


def find_cited_incidents(content: Any) -> Iterator[str]:
    """Yield references to the incidents that an answer names, such as `incident:7`."""
    match content:
        case tuple():
            for item in content:
                yield from find_cited_incidents(item)
        case IncidentRecord(number=number):
            yield f"incident:{number}"
        case Sighting(recent=numbers):
            yield from (f"incident:{number}" for number in numbers)
        case Match(kind="incident", id=number):
            yield f"incident:{number}"
        case Neighborhood(nodes=nodes, edges=edges):
            incidents = (node.value for node in nodes if node.kind == NodeKind.INCIDENT)
            yield from (f"incident:{number}" for number in incidents)
            yield from find_cited_incidents(edges)
        case Edge(known_from=sources):
            yield from (source for source in sources if source.startswith("incident:"))


@dataclass(frozen=True, slots=True)
class RelationReport:
    """A relation that an answer reports."""

    relation: Relation
    at: datetime
    """The time of the relation, or else of the question."""
    by: str | Marking = Marking()  # noqa: RUF009 - it cannot change
    """The provider that reports it; for an enrichment, the marking of the question."""

    def marking(self, markings: Mapping[str, Marking]) -> Marking:
        """Return its marking, given the marking of each provider."""
        return self.by if isinstance(self.by, Marking) else find_marking(self.by, markings)


def find_reported_relations(
    question: Question[Any], content: Any, asked_at: datetime
) -> list[RelationReport]:
    """Return the relations that an answer with events or enrichments reports."""
    if isinstance(question, FindEvents) and isinstance(content, FoundEvents):
        return [
            RelationReport(relation, relation.at or event.occurred_at, question.provider)
            for event in content.events
            for relation in event.relations
        ]
    if isinstance(question, GetEnrichments) and content is not None:
        return [
            RelationReport(relation, relation.at or asked_at, question.marking)
            for enrichment in content
            for relation in enrichment.relations
        ]
    return []


def find_named_entities(content: FoundEvents) -> Iterator[Entity]:
    """Yield the entities that events name."""
    for event in content.events:
        yield from event.entities
        for relation in event.relations:
            yield from (relation.source, relation.target)
