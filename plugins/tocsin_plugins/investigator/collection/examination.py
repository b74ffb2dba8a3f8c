"""Examination of entities: sightings, incidents, opinions, neighbors and events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tocsin import (
    Disposition,
    Edge,
    EnricherSource,
    Entity,
    EntityKind,
    FindEvents,
    FindIncidents,
    FindNeighbors,
    FoundEvents,
    GetEnrichments,
    GetSightings,
    IncidentRecord,
    Marking,
    Node,
    ProviderSource,
    Relation,
    Sources,
)
from tocsin_plugins.investigator.case import CaseFile
from tocsin_plugins.investigator.collection.query_client import BoundedQueryClient
from tocsin_plugins.investigator.collection.starting_point import add_bounded_incidents
from tocsin_plugins.investigator.evidence import entity_sort_key
from tocsin_plugins.investigator.phrases import WAS, count_noun, state
from tocsin_plugins.investigator.roles import find_subjects
from tocsin_plugins.investigator.settings import Settings

_RANKS = {disposition: rank for rank, disposition in enumerate(Disposition)}


def sort_by_priority(case: CaseFile, entities: Iterable[Entity]) -> list[Entity]:
    """Return entities, the most significant first.

    Entities with a bad disposition come first, then shared, rare and external ones.
    """
    return sorted(entities, key=lambda entity: _priority(case, entity))


def _priority(case: CaseFile, entity: Entity) -> tuple[object, ...]:
    sighting = case.find_sighting(entity)
    return (
        _RANKS[case.find_disposition(entity)],
        -len(case.incidents_with(entity)),
        sighting.incident_count,
        sighting.internal,
        entity_sort_key(entity),
    )


def is_pivot(case: CaseFile, entity: Entity) -> bool:
    """Return whether an entity leads to further questions.

    Well-known entities and infrastructure do not, unless the query names them.
    """
    return entity in case.scope.entities or case.connects(entity)


T = TypeVar("T")
_SIGHTINGS_AT_ONCE = 200
_ENRICHMENTS_AT_ONCE = 50
_ABOUT_AT_ONCE = 25
_EVENTS_AT_ONCE = 2  # of each provider, which is not asked for more at once
_KINDS = frozenset(kind.value for kind in EntityKind)


@dataclass(slots=True)
class EntityExaminer:
    """Examines the entities of a case, round by round."""

    client: BoundedQueryClient
    case: CaseFile
    sources: Sources
    settings: Settings
    provider: str | None
    sources_step: str
    """The step that lists the available sources."""

    @property
    def selected_providers(self) -> list[ProviderSource]:
        """The providers that the investigation covers, by name."""
        every = sorted(self.sources.providers, key=lambda provider: provider.name)
        return [provider for provider in every if self._is_asked_for(provider.name)]

    async def load_sightings(self, entities: Sequence[Entity]) -> None:
        """Load the sightings of entities."""
        new = [entity for entity in entities if entity not in self.case.sightings]
        chunks = _chunks(new, _SIGHTINGS_AT_ONCE)
        questions = [GetSightings(entities=chunk) for chunk in chunks]
        for answer in await self.client.ask_all(questions):
            for sighting in answer.content or ():
                self.case.sightings[sighting.entity] = (sighting, answer.step)

    async def examine(self, entities: Sequence[Entity]) -> None:
        """Ask all sources about entities with loaded sightings."""
        followed = [entity for entity in entities if is_pivot(self.case, entity)]
        await self._find_incidents(followed)
        await self._enrich(entities)
        followed = sort_by_priority(self.case, followed)
        await self._find_neighbors(followed)
        await self._events(followed)

    async def _find_incidents(self, entities: Sequence[Entity]) -> None:
        """Add the incidents in the window; of other incidents, only the markings are used.

        The newest incidents may all be outside the window or from other providers, so there is a
        separate question for those inside.
        """
        limit, window = self.client.bounds.incidents + 1, self.case.window
        questions = [
            question
            for chunk in _chunks(entities, _ABOUT_AT_ONCE)
            for question in (
                FindIncidents(entities=chunk, window=window, provider=self.provider, limit=limit),
                FindIncidents(entities=chunk, limit=limit),
            )
        ]
        found: dict[int, tuple[IncidentRecord, str]] = {}
        for answer in await self.client.ask_all(questions):
            for record in answer.content or ():
                self.case.mark(record)
                if self._is_wanted(record):
                    found.setdefault(record.number, (record, answer.step))
        add_bounded_incidents(self.client, self.case, list(found.values()))

    def _is_wanted(self, record: IncidentRecord) -> bool:
        """Return whether to examine a related incident."""
        scope = self.case.scope
        is_own = not scope.narrowed or bool(set(scope.entities) & set(record.entities))
        is_within = record.occurred_at in self.case.window
        return is_own and is_within and self._is_asked_for(record.provider)

    async def _enrich(self, entities: Sequence[Entity]) -> None:
        questions = [
            question
            for enricher in sorted(self.sources.enrichers, key=lambda enricher: enricher.name)
            for question in self._questions_to(enricher, entities)
        ]
        answers = await self.client.ask_all(questions)
        # Not strict, here and below: past its bounds, the client answers only the first questions
        for question, answer in zip(questions, answers, strict=False):
            for enrichment in answer.content or ():
                self.case.add_opinion(question.enricher, enrichment, answer.step)

    def _questions_to(
        self, enricher: EnricherSource, entities: Sequence[Entity]
    ) -> Iterator[GetEnrichments]:
        """Yield questions, each on entities with the same marking."""
        alike: defaultdict[Marking, list[Entity]] = defaultdict(list)
        for entity in entities:
            sighting = self.case.find_sighting(entity)
            is_informative = not sighting.well_known or entity in self.case.scope.entities
            may_share = not (enricher.online and self.case.is_ours(entity))
            if entity.kind in enricher.kinds and is_informative and may_share:
                alike[self.case.find_entity_marking(entity)].append(entity)
        for marking in sorted(alike, key=lambda marking: (marking.tlp.rank, marking.pap.rank)):
            for chunk in _chunks(alike[marking], _ENRICHMENTS_AT_ONCE):
                yield GetEnrichments(enricher=enricher.name, entities=chunk, marking=marking)

    async def _find_neighbors(self, entities: Sequence[Entity]) -> None:
        questions = [FindNeighbors(entity=entity) for entity in entities]
        for question, answer in zip(questions, await self.client.ask_all(questions), strict=False):
            if answer.content is None:
                continue
            for edge in answer.content.edges:
                if relation := _relation(edge):
                    self.case.add_relation(relation, answer.step, question.entity, edge.marking)
            if not answer.content.complete:
                self._incomplete("graph", question.entity, answer.step)

    async def _events(self, entities: Sequence[Entity]) -> None:
        """Search for events, a few at a time, so that slow providers do not use up the time."""
        if self.case.scope.narrowed:
            subjects = find_subjects(self.case)
            entities = [entity for entity in entities if entity in subjects]
        questions = self._questions_for_events(entities)
        room = max(self.client.bounds.provider_calls - self.client.provider_calls, 0)
        self._record_skipped_searches(len(questions) - room)
        for some in _chunks(
            questions[:room], _EVENTS_AT_ONCE * max(len(self.selected_providers), 1)
        ):
            asked = [
                question for question in some if not self.client.has_given_up_on(question.asked_of)
            ]
            for question, answer in zip(asked, await self.client.ask_all(asked), strict=False):
                if answer.content is not None:
                    self._take_events(question, answer.content, answer.step)

    def _questions_for_events(self, entities: Sequence[Entity]) -> list[FindEvents]:
        limit, window = self.settings.events_per_question, self.case.window
        return [
            FindEvents(provider=provider.name, entity=entity, window=window, limit=limit)
            for entity in entities
            for provider in self.selected_providers
            if has_events_for(provider, entity)
        ]

    def _take_events(self, question: FindEvents, found: FoundEvents, step: str) -> None:
        provider = next(
            provider for provider in self.selected_providers if provider.name == question.provider
        )
        for event in found.events:
            self.case.add_event(provider, event, step, question.entity)
        if not found.complete:
            self._incomplete(question.asked_of, question.entity, step)

    def _is_asked_for(self, provider: str) -> bool:
        return self.provider in (None, provider)

    def _record_skipped_searches(self, left: int) -> None:
        if left > 0:
            searches = count_noun(left, "event search", "event searches")
            why = f"because the limit is {self.client.bounds.provider_calls}"
            text = f"{searches} {WAS[left == 1]} skipped, {why}"
            self.case.gaps.append(state(text, self.client.last_step))

    def _incomplete(self, asked_of: str, entity: Entity, step: str) -> None:
        self.case.truncated.setdefault(asked_of, []).append((entity, step))


def has_events_for(provider: ProviderSource, entity: Entity) -> bool:
    """Return whether a provider can search for events of an entity."""
    is_available = provider.answers_events and not provider.reason
    return is_available and entity.kind in provider.event_kinds


def _relation(edge: Edge) -> Relation | None:
    """Return an edge between two entities as a relation; None for other edges."""
    if edge.source.kind not in _KINDS or edge.target.kind not in _KINDS:
        return None
    source, target = _entity(edge.source), _entity(edge.target)
    return Relation(source=source, type=edge.type, target=target, at=edge.first_seen)


def _entity(node: Node) -> Entity:
    return Entity(EntityKind(node.kind), node.value)


def _chunks(items: Sequence[T], size: int) -> list[tuple[T, ...]]:
    return [tuple(items[begin : begin + size]) for begin in range(0, len(items), size)]
