"""Script that a scripted query client answers from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from tocsin.model import (
    Edge,
    EnricherSource,
    Enrichment,
    Entity,
    EntityKind,
    FindEntities,
    FindEvents,
    FindIncidents,
    FindNeighbors,
    FoundEntities,
    FoundEvents,
    GetEnrichments,
    GetIncidents,
    GetSightings,
    IncidentRecord,
    ListIncidents,
    ListSources,
    Match,
    Neighborhood,
    Node,
    ProviderSource,
    Question,
    SearchHistory,
    SiemEvent,
    Sighting,
    Sources,
    Window,
)
from tocsin.observables import EntityPattern, Environment

T = TypeVar("T")
_RECENT = 10


class NotThereError(Exception):
    """The requested source does not exist."""


@dataclass(kw_only=True, slots=True)
class QueryScript:
    """Everything that a scripted query client knows."""

    incidents: Sequence[IncidentRecord] = ()
    events: Mapping[str, Sequence[SiemEvent]] = field(default_factory=dict)
    """Events by provider. Only these providers support event searches."""
    enrichments: Mapping[str, Sequence[Enrichment]] = field(default_factory=dict)
    """Enrichments by enricher. Only these enrichers exist."""
    edges: Sequence[Edge] = ()
    matches: Sequence[Match] = ()
    """Results for `SearchHistory`. A result matches if its title contains every word of the
    text."""
    environment: Environment = field(default_factory=Environment)
    """Tells which entities are internal or well known."""
    away: Mapping[str, str] = field(default_factory=dict)
    """Unavailable sources, such as `provider:edge`, `enricher:lists` or `graph`, each with the
    reason."""
    sources: Sources | None = None
    """The result of `ListSources`; by default, the sources that occur in the other fields."""
    each_takes: timedelta = timedelta(0)
    """How far each question advances `elapsed`."""


def answer_question(script: QueryScript, question: Question[Any]) -> Any:
    """Return a script's result for a question, ordered and limited like the service.

    Raises NotThereError for an unknown source, and TypeError for an unknown question.
    """
    answer = _ANSWERS.get(type(question))
    if answer is None:
        raise TypeError(f"{question!r} is not a known question")
    return answer(script, question)


def _list_sources(script: QueryScript, _: ListSources) -> Sources:
    if script.sources is not None:
        return script.sources
    names = sorted({*script.events, *(record.provider for record in script.incidents)})
    return Sources(
        providers=tuple(
            ProviderSource(
                name=name,
                answers_events=name in script.events,
                reason=script.away.get(f"provider:{name}"),
            )
            for name in names
        ),
        enrichers=tuple(
            EnricherSource(name=name, kinds=tuple(EntityKind), online=False)
            for name in sorted(script.enrichments)
        ),
        names_networks=script.environment.names_networks,
    )


def _get_incidents(script: QueryScript, question: GetIncidents) -> tuple[IncidentRecord, ...]:
    return tuple(record for record in script.incidents if record.number in question.numbers)


def _find_incidents(script: QueryScript, question: FindIncidents) -> tuple[IncidentRecord, ...]:
    involved = (
        incident
        for incident in script.incidents
        if not set(question.entities).isdisjoint(incident.entities)
    )
    return _select_latest(involved, question.window, question.provider)[: question.limit]


def _list_incidents(script: QueryScript, question: ListIncidents) -> tuple[IncidentRecord, ...]:
    least = question.min_severity.rank
    severe = (record for record in script.incidents if record.severity.rank >= least)
    return _select_latest(severe, question.window, question.provider)[: question.limit]


def _select_latest(
    records: Iterable[IncidentRecord], window: Window | None, provider: str | None
) -> tuple[IncidentRecord, ...]:
    found = [
        record
        for record in records
        if (window is None or record.occurred_at in window) and provider in (None, record.provider)
    ]
    return tuple(sorted(found, key=lambda it: (it.occurred_at, it.number), reverse=True))


def _find_entities(script: QueryScript, question: FindEntities) -> FoundEntities:
    pattern = EntityPattern.parse(question.pattern, question.kinds)
    records = _select_latest(script.incidents, question.window, None)
    involved = dict.fromkeys(entity for record in records for entity in record.entities)
    found = [entity for entity in involved if pattern.matches(entity)]
    kept = tuple(found[: question.limit])
    return FoundEntities(entities=kept, complete=len(kept) == len(found))


def _get_sightings(script: QueryScript, question: GetSightings) -> tuple[Sighting, ...]:
    return tuple(_build_sighting(script, entity) for entity in question.entities)


def _build_sighting(script: QueryScript, entity: Entity) -> Sighting:
    records = _select_latest(
        (incident for incident in script.incidents if entity in incident.entities), None, None
    )
    return Sighting(
        entity=entity,
        incident_count=len(records),
        first_seen=min((record.occurred_at for record in records), default=None),
        last_seen=max((record.occurred_at for record in records), default=None),
        recent=tuple(record.number for record in records[:_RECENT]),
        internal=script.environment.is_internal(entity),
        well_known=script.environment.is_well_known(entity),
    )


def _find_neighbors(script: QueryScript, question: FindNeighbors) -> Neighborhood:
    nodes, edges = [Node.of(question.entity)], list[Edge]()
    for _ in range(question.depth):
        reached = set(nodes)
        near = [edge for edge in script.edges if reached & {edge.source, edge.target}]
        edges += [edge for edge in near if edge not in edges]
        nodes = list(dict.fromkeys([*nodes, *_endpoints(edges)]))
    kept = edges[: question.limit]
    nodes = list(dict.fromkeys([nodes[0], *_endpoints(kept)]))
    return Neighborhood(nodes=tuple(nodes), edges=tuple(kept), complete=kept == edges)


def _endpoints(edges: Iterable[Edge]) -> Iterator[Node]:
    for edge in edges:
        yield edge.source
        yield edge.target


def _find_events(script: QueryScript, question: FindEvents) -> FoundEvents:
    found = [
        event
        for event in _get_named(script.events, question.provider, "provider with events")
        if question.entity in event.entities and event.occurred_at in question.window
    ]
    found.sort(key=lambda event: (event.occurred_at, event.external_id or ""))
    kept = tuple(found[-question.limit :])
    return FoundEvents(events=kept, complete=len(kept) == len(found))


def _get_enrichments(script: QueryScript, question: GetEnrichments) -> tuple[Enrichment, ...]:
    enrichments = _get_named(script.enrichments, question.enricher, "enricher")
    return tuple(
        enrichment
        for entity in question.entities
        for enrichment in enrichments
        if enrichment.entity == entity
    )


def _get_named(several: Mapping[str, Sequence[T]], name: str, what: str) -> Sequence[T]:
    if name not in several:
        raise NotThereError(f"no such {what}")
    return several[name]


def _search_history(script: QueryScript, question: SearchHistory) -> tuple[Match, ...]:
    words = _split_words(question.text)
    found = [match for match in script.matches if words <= _split_words(match.title)]
    return tuple(sorted(found, key=lambda match: -match.score)[: question.limit])


def _split_words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


_ANSWERS: dict[type[Question[Any]], Callable[[QueryScript, Any], Any]] = {
    ListSources: _list_sources,
    GetIncidents: _get_incidents,
    FindIncidents: _find_incidents,
    ListIncidents: _list_incidents,
    FindEntities: _find_entities,
    GetSightings: _get_sightings,
    FindNeighbors: _find_neighbors,
    FindEvents: _find_events,
    GetEnrichments: _get_enrichments,
    SearchHistory: _search_history,
}
