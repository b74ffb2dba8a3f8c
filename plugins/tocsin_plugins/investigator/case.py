"""Case file: everything that an investigation collected, with its steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from operator import attrgetter

from tocsin import (
    Disposition,
    Enrichment,
    Entity,
    EntityKind,
    IncidentRecord,
    Marking,
    Match,
    ProviderSource,
    Relation,
    SiemEvent,
    Sighting,
    Statement,
    Window,
)
from tocsin_plugins.investigator.evidence import (
    Opinion,
    SeenEvent,
    SeenRelation,
    entity_sort_key,
    relation_sort_key,
)
from tocsin_plugins.investigator.interpretation import InvestigationScope

BAD_DISPOSITIONS = (Disposition.MALICIOUS, Disposition.SUSPICIOUS)
_OF_OUTSIDE = frozenset(
    {EntityKind.IP, EntityKind.DOMAIN, EntityKind.URL, EntityKind.FILE_HASH, EntityKind.EMAIL}
)
ORIGINS = frozenset({EntityKind.IP, EntityKind.EMAIL})
"""What kinds of entity an attack comes from."""
_PLACE = attrgetter("place")
_OF_OURS = frozenset({EntityKind.HOST, EntityKind.MAILBOX, EntityKind.CLOUD_RESOURCE})


@dataclass(slots=True)
class Case:
    """Everything that is known of what was asked. Rules only read it."""

    scope: InvestigationScope
    window: Window
    everywhere: int
    """In so many incidents, what is internal connects nothing."""
    between_steps: timedelta
    """How much time may lie between two steps of one attack."""
    incidents: dict[int, IncidentRecord] = field(default_factory=dict)
    """Those that are examined."""
    depths: dict[Entity, int] = field(default_factory=dict)
    """The entities that are examined, and how far each is from what was asked."""
    matches: list[tuple[Match, str]] = field(default_factory=list)
    sightings: dict[Entity, tuple[Sighting, str]] = field(default_factory=dict)
    gaps: list[Statement] = field(default_factory=list)
    """What was left out, and why."""
    truncated: dict[str, list[tuple[Entity, str]]] = field(default_factory=dict)
    """Who had more to tell than was asked for, of what, and in which step."""
    _reported: set[tuple[object, ...]] = field(default_factory=set)
    """What SIEMs call the incidents and their alerts."""
    _markings: defaultdict[Entity, set[Marking]] = field(default_factory=lambda: defaultdict(set))
    _incidents_with: defaultdict[Entity, set[int]] = field(default_factory=lambda: defaultdict(set))
    _events: dict[tuple[object, ...], SeenEvent] = field(default_factory=dict)
    _events_with: defaultdict[Entity, list[SeenEvent]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _opinions: defaultdict[Entity, list[Opinion]] = field(default_factory=lambda: defaultdict(list))
    _relations: dict[Relation, SeenRelation] = field(default_factory=dict)
    _relations_from: defaultdict[Entity, list[SeenRelation]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _relations_to: defaultdict[Entity, list[SeenRelation]] = field(
        default_factory=lambda: defaultdict(list)
    )

    # What is added

    def add_incident(self, record: IncidentRecord) -> None:
        """Take an incident to be examined."""
        self.mark(record)
        self.incidents.setdefault(record.number, record)
        self._reported.update(_record_keys(record))
        for entity in record.entities:
            self._incidents_with[entity].add(record.number)

    def mark(self, record: IncidentRecord) -> None:
        """Remember how an incident is marked, and so what it involves."""
        for entity in record.entities:
            self._markings[entity].add(record.marking)

    def add_event(self, provider: ProviderSource, event: SiemEvent, step: str, via: Entity) -> None:
        """Take an event that was found through an entity; once, however often it is found."""
        key = (
            provider.name,
            event.external_id or (event.occurred_at, event.summary, event.entities),
        )
        if key in self._events:
            return
        seen = self._events[key] = SeenEvent.of(provider.name, event, step)
        for entity in dict.fromkeys((via, *event.entities)):
            self._events_with[entity].append(seen)
            self._markings[entity].add(provider.marking)
            self._inherit(entity, via)
        for relation in event.relations:
            self.add_relation(relation, step, via)

    def add_opinion(self, source: str, enrichment: Enrichment, step: str) -> None:
        """Take what an enricher says."""
        self._opinions[enrichment.entity].append(Opinion(source, enrichment, step))
        for relation in enrichment.relations:
            self.add_relation(relation, step, enrichment.entity)

    def add_relation(
        self, relation: Relation, step: str, via: Entity, marking: Marking | None = None
    ) -> None:
        """Take a relation that was found through an entity, and how it is marked if told."""
        if relation not in self._relations:
            seen = self._relations[relation] = SeenRelation(relation, step)
            self._relations_from[relation.source].append(seen)
            self._relations_to[relation.target].append(seen)
        for entity in (relation.source, relation.target):
            if marking is not None:
                self._markings[entity].add(marking)
            self._inherit(entity, via)

    def _inherit(self, entity: Entity, via: Entity) -> None:
        if entity != via:
            self._markings[entity] |= self._markings[via]

    # What is read

    @property
    def entities(self) -> list[Entity]:
        """The entities that are examined, the nearest first."""
        return sorted(self.depths, key=lambda it: (self.depths[it], *entity_sort_key(it)))

    @property
    def records(self) -> list[IncidentRecord]:
        """The incidents that are examined, the earliest first."""
        return sorted(self.incidents.values(), key=lambda it: (it.occurred_at, it.number))

    @property
    def in_focus(self) -> list[IncidentRecord]:
        """The incidents that were asked about: by number, by what they involve, or in general.

        Those that came up on the way are none of them.
        """
        scope = self.scope
        if scope.incidents:
            return [record for record in self.records if record.number in scope.incidents]
        if scope.entities:
            named = set(scope.entities)
            return [record for record in self.records if named & set(record.entities)]
        return self.records

    @property
    def subjects(self) -> frozenset[Entity]:
        """What the question is about: what it names, and the origins of the incidents asked about.

        Of an incident that tells of no origin from outside it is all that the incident involves.
        """
        found = set(self.scope.entities)
        for record in self.in_focus:
            involved = set(record.entities) - self.scope.ignored_entities
            foreign = {it for it in involved if it.kind in _OF_OUTSIDE and not self.is_ours(it)}
            has_origin = any(it.kind in ORIGINS for it in foreign)
            found |= foreign if has_origin else {it for it in involved if self.connects(it)}
        return frozenset(found)

    @property
    def events(self) -> list[SeenEvent]:
        """The events, the earliest first, without those that are an examined incident itself."""
        return sorted(filter(self._stands_alone, self._events.values()), key=_PLACE)

    @property
    def relations(self) -> list[SeenRelation]:
        """The relations, in an order of their own."""
        return sorted(self._relations.values(), key=relation_sort_key)

    @property
    def opinions(self) -> list[Opinion]:
        """What enrichers say of the entities that are examined."""
        return [opinion for entity in self.entities for opinion in self.find_opinions(entity)]

    def incidents_with(self, entity: Entity) -> list[IncidentRecord]:
        """Return the examined incidents that involve an entity, the earliest first."""
        records = (self.incidents[number] for number in self._incidents_with.get(entity, ()))
        return sorted(records, key=lambda it: (it.occurred_at, it.number))

    def events_with(self, entity: Entity) -> list[SeenEvent]:
        """Return the events with an entity, as `events` has them."""
        return sorted(filter(self._stands_alone, self._events_with.get(entity, ())), key=_PLACE)

    def find_own_events(self, record: IncidentRecord) -> list[SeenEvent]:
        """Return the events that are an incident or one of its alerts, the earliest first."""
        own = (self._events.get(name) for name in _record_keys(record))
        return sorted((seen for seen in own if seen), key=_PLACE)

    def _stands_alone(self, seen: SeenEvent) -> bool:
        return (seen.provider, seen.event.external_id) not in self._reported

    def relations_from(self, entity: Entity) -> list[SeenRelation]:
        """Return the relations of which an entity is the source."""
        return sorted(self._relations_from.get(entity, ()), key=relation_sort_key)

    def relations_to(self, entity: Entity) -> list[SeenRelation]:
        """Return the relations of which an entity is the target."""
        return sorted(self._relations_to.get(entity, ()), key=relation_sort_key)

    def find_opinions(self, entity: Entity) -> list[Opinion]:
        """Return what enrichers say of an entity, by their names."""
        return sorted(
            self._opinions.get(entity, ()), key=lambda it: (it.source, it.enrichment.summary)
        )

    def find_disposition(self, entity: Entity) -> Disposition:
        """Return the worst that is said of an entity; benign only where nobody says worse."""
        said = {opinion.enrichment.disposition for opinion in self._opinions.get(entity, ())}
        ranked = (*BAD_DISPOSITIONS, Disposition.BENIGN)
        return next((it for it in ranked if it in said), Disposition.UNKNOWN)

    def marking_of(self, entity: Entity) -> Marking:
        """Return the strictest marking of what an entity comes from."""
        return Marking.strictest(self._markings.get(entity, ()))

    def find_sighting(self, entity: Entity) -> Sighting:
        """Return what is known of an entity here; that it was never seen, where nobody said."""
        found = self.sightings.get(entity)
        return found[0] if found else Sighting(entity=entity, incident_count=0)

    def is_infrastructure(self, entity: Entity) -> bool:
        """Return whether an entity is ours and in so many incidents that it connects nothing."""
        sighting = self.find_sighting(entity)
        return sighting.internal and sighting.incident_count >= self.everywhere

    def connects(self, entity: Entity) -> bool:
        """Return whether an entity can connect incidents: it is neither well known nor
        infrastructure.
        """
        return not self.find_sighting(entity).well_known and not self.is_infrastructure(entity)

    def is_ours(self, entity: Entity) -> bool:
        """Return whether an entity is the organisation's own."""
        return entity.kind in _OF_OURS or self.find_sighting(entity).internal

    def is_outside(self, entity: Entity) -> bool:
        """Return whether an entity is somebody else's, and says something."""
        sighting = self.find_sighting(entity)
        is_plain = not sighting.internal and not sighting.well_known
        return entity.kind in _OF_OUTSIDE and is_plain

    def found_entities(self) -> Iterator[Entity]:
        """Yield every entity that was met, examined or not, each once, in order."""
        met = {*self._incidents_with, *self._events_with}
        for relation in self._relations:
            met |= {relation.source, relation.target}
        yield from sorted(met, key=entity_sort_key)


def _record_keys(record: IncidentRecord) -> dict[tuple[object, ...], None]:
    """Return what its SIEM calls an incident and its alerts, as events are kept by."""
    names = (record.external_id, *(alert.external_id for alert in record.alerts))
    return dict.fromkeys((record.provider, name) for name in names if name)


def cite_incidents(records: Iterable[IncidentRecord]) -> list[str]:
    """Return the references of incidents."""
    return [f"incident:{record.number}" for record in records]
