"""What a scripted desk answers from, and how it answers each question."""

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
    EnrichmentsOf,
    Entity,
    EntityKind,
    EventsFound,
    EventsOf,
    IncidentRecord,
    IncidentsAbout,
    IncidentsNumbered,
    IncidentsWithin,
    Match,
    Matching,
    Neighbourhood,
    NeighboursOf,
    Node,
    ProviderSource,
    Question,
    SiemEvent,
    Sighting,
    SightingsOf,
    Sources,
    WhoIsThere,
    Window,
)
from tocsin.observables import Environment

T = TypeVar("T")
_RECENT = 10


class NotThereError(Exception):
    """Who is asked does not exist."""


@dataclass(kw_only=True, slots=True)
class Script:
    """Everything that there is to be known."""

    incidents: Sequence[IncidentRecord] = ()
    events: Mapping[str, Sequence[SiemEvent]] = field(default_factory=dict)
    """By provider; each that is named here can be asked for events."""
    enrichments: Mapping[str, Sequence[Enrichment]] = field(default_factory=dict)
    """By enricher; each that is named here can be asked."""
    edges: Sequence[Edge] = ()
    matches: Sequence[Match] = ()
    """What `Matching` finds, where its title holds every word."""
    environment: Environment = field(default_factory=Environment)
    """Tells what is internal and what is well known."""
    away: Mapping[str, str] = field(default_factory=dict)
    """Who cannot be asked, and why: `provider:edge`, `enricher:lists`, `graph`."""
    sources: Sources | None = None
    """Who is there; by default, whoever is named above."""
    each_takes: timedelta = timedelta(0)
    """How long each question is said to have taken."""


def answer_from(script: Script, question: Question[Any]) -> Any:
    """Return what a script has for a question, as the service orders and limits it.

    Raises NotThereError where nobody of the name is there, and TypeError for no question at all.
    """
    answer = _ANSWERS.get(type(question))
    if answer is None:
        raise TypeError(f"{question!r} is none of the questions that there are")
    return answer(script, question)


def _sources(script: Script, _: WhoIsThere) -> Sources:
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
    )


def _numbered(script: Script, question: IncidentsNumbered) -> tuple[IncidentRecord, ...]:
    return tuple(record for record in script.incidents if record.number in question.numbers)


def _about(script: Script, question: IncidentsAbout) -> tuple[IncidentRecord, ...]:
    involved = (it for it in script.incidents if not set(question.entities).isdisjoint(it.entities))
    return _latest(involved, question.window, question.provider)[: question.limit]


def _within(script: Script, question: IncidentsWithin) -> tuple[IncidentRecord, ...]:
    least = question.min_severity.rank
    severe = (record for record in script.incidents if record.severity.rank >= least)
    return _latest(severe, question.window, question.provider)[: question.limit]


def _latest(
    records: Iterable[IncidentRecord], window: Window | None, provider: str | None
) -> tuple[IncidentRecord, ...]:
    found = [
        record
        for record in records
        if (window is None or record.occurred_at in window) and provider in (None, record.provider)
    ]
    return tuple(sorted(found, key=lambda it: (it.occurred_at, it.number), reverse=True))


def _sightings(script: Script, question: SightingsOf) -> tuple[Sighting, ...]:
    return tuple(_sighting(script, entity) for entity in question.entities)


def _sighting(script: Script, entity: Entity) -> Sighting:
    records = _latest((it for it in script.incidents if entity in it.entities), None, None)
    return Sighting(
        entity=entity,
        incident_count=len(records),
        first_seen=min((record.occurred_at for record in records), default=None),
        last_seen=max((record.occurred_at for record in records), default=None),
        recent=tuple(record.number for record in records[:_RECENT]),
        internal=script.environment.is_internal(entity),
        well_known=script.environment.is_well_known(entity),
    )


def _neighbours(script: Script, question: NeighboursOf) -> Neighbourhood:
    nodes, edges = [Node.of(question.entity)], list[Edge]()
    for _ in range(question.depth):
        reached = set(nodes)
        near = [it for it in script.edges if reached & {it.source, it.target}]
        edges += [edge for edge in near if edge not in edges]
        nodes = list(dict.fromkeys([*nodes, *_ends(edges)]))
    kept = edges[: question.limit]
    nodes = list(dict.fromkeys([nodes[0], *_ends(kept)]))
    return Neighbourhood(nodes=tuple(nodes), edges=tuple(kept), complete=kept == edges)


def _ends(edges: Iterable[Edge]) -> Iterator[Node]:
    for edge in edges:
        yield edge.source
        yield edge.target


def _events(script: Script, question: EventsOf) -> EventsFound:
    found = [
        event
        for event in _of(script.events, question.provider, "provider that finds events")
        if question.entity in event.entities and event.occurred_at in question.window
    ]
    found.sort(key=lambda event: (event.occurred_at, event.external_id or ""))
    kept = tuple(found[-question.limit :])
    return EventsFound(events=kept, complete=len(kept) == len(found))


def _enrichments(script: Script, question: EnrichmentsOf) -> tuple[Enrichment, ...]:
    said = _of(script.enrichments, question.enricher, "enricher")
    return tuple(it for entity in question.entities for it in said if it.entity == entity)


def _of(several: Mapping[str, Sequence[T]], name: str, what: str) -> Sequence[T]:
    if name not in several:
        raise NotThereError(f"there is no such {what}")
    return several[name]


def _matching(script: Script, question: Matching) -> tuple[Match, ...]:
    words = _words(question.text)
    found = [match for match in script.matches if words <= _words(match.title)]
    return tuple(sorted(found, key=lambda match: -match.score)[: question.limit])


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


_ANSWERS: dict[type[Question[Any]], Callable[[Script, Any], Any]] = {
    WhoIsThere: _sources,
    IncidentsNumbered: _numbered,
    IncidentsAbout: _about,
    IncidentsWithin: _within,
    SightingsOf: _sightings,
    NeighboursOf: _neighbours,
    EventsOf: _events,
    EnrichmentsOf: _enrichments,
    Matching: _matching,
}
