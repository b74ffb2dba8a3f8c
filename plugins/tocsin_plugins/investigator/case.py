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
"""The kinds of entity that an attack can come from."""
_PLACE = attrgetter("place")
_OF_OURS = frozenset({EntityKind.HOST, EntityKind.MAILBOX, EntityKind.CLOUD_RESOURCE})


@dataclass(slots=True)
class CaseFile:
    """Everything that was collected for a query. Rules only read it."""

    scope: InvestigationScope
    window: Window
    everywhere: int
    """Number of incidents from which on an internal entity counts as infrastructure."""
    between_steps: timedelta
    """Maximum time between two steps of one attack."""
    incidents: dict[int, IncidentRecord] = field(default_factory=dict)
    """The examined incidents."""
    depths: dict[Entity, int] = field(default_factory=dict)
    """The examined entities, each with its distance from the subject."""
    matches: list[tuple[Match, str]] = field(default_factory=list)
    sightings: dict[Entity, tuple[Sighting, str]] = field(default_factory=dict)
    gaps: list[Statement] = field(default_factory=list)
    """Limitations of the report: what was left out, and why."""
    truncated: dict[str, list[tuple[Entity, str]]] = field(default_factory=dict)
    """Sources with more results than the limit, with the entities and steps."""
    _reported: set[tuple[object, ...]] = field(default_factory=set)
    """Identifiers of the incidents and their alerts at the SIEMs."""
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

    # Writes

    def add_incident(self, record: IncidentRecord) -> None:
        """Add an incident to examine."""
        self.mark(record)
        self.incidents.setdefault(record.number, record)
        self._reported.update(_record_keys(record))
        for entity in record.entities:
            self._incidents_with[entity].add(record.number)

    def mark(self, record: IncidentRecord) -> None:
        """Record the marking of an incident for the entities in it."""
        for entity in record.entities:
            self._markings[entity].add(record.marking)

    def add_event(self, provider: ProviderSource, event: SiemEvent, step: str, via: Entity) -> None:
        """Add an event that was found through an entity; each event counts once."""
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
        """Add the opinion of an enricher."""
        self._opinions[enrichment.entity].append(Opinion(source, enrichment, step))
        for relation in enrichment.relations:
            self.add_relation(relation, step, enrichment.entity)

    def add_relation(
        self, relation: Relation, step: str, via: Entity, marking: Marking | None = None
    ) -> None:
        """Add a relation that was found through an entity, with its marking if there is one."""
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

    # Reads

    @property
    def entities(self) -> list[Entity]:
        """The examined entities, the nearest first."""
        return sorted(
            self.depths, key=lambda entity: (self.depths[entity], *entity_sort_key(entity))
        )

    @property
    def asked_entities(self) -> list[Entity]:
        """The examined entities that the investigation began with."""
        return [entity for entity in self.entities if self.depths[entity] == 0]

    @property
    def records(self) -> list[IncidentRecord]:
        """The examined incidents, the earliest first."""
        return sorted(
            self.incidents.values(), key=lambda record: (record.occurred_at, record.number)
        )

    @property
    def in_focus(self) -> list[IncidentRecord]:
        """The incidents that match the query: by number, by entity, or in general.

        Related incidents that were found later are not among them.
        """
        scope = self.scope
        if scope.incidents:
            return [record for record in self.records if record.number in scope.incidents]
        if scope.is_specific:
            named = set(scope.entities)
            return [record for record in self.records if named & set(record.entities)]
        return self.records

    @property
    def events(self) -> list[SeenEvent]:
        """The events, the earliest first, except those that are an examined incident."""
        return sorted(filter(self._stands_alone, self._events.values()), key=_PLACE)

    @property
    def relations(self) -> list[SeenRelation]:
        """The relations, in a fixed order."""
        return sorted(self._relations.values(), key=relation_sort_key)

    @property
    def opinions(self) -> list[Opinion]:
        """The opinions of enrichers on the examined entities."""
        return [opinion for entity in self.entities for opinion in self.find_opinions(entity)]

    def incidents_with(self, entity: Entity) -> list[IncidentRecord]:
        """Return the examined incidents with an entity, the earliest first."""
        records = (self.incidents[number] for number in self._incidents_with.get(entity, ()))
        return sorted(records, key=lambda record: (record.occurred_at, record.number))

    def events_with(self, entity: Entity) -> list[SeenEvent]:
        """Return the events with an entity, as `events` has them."""
        return sorted(filter(self._stands_alone, self._events_with.get(entity, ())), key=_PLACE)

    def find_own_events(self, record: IncidentRecord) -> list[SeenEvent]:
        """Return the events that an incident or its alerts consist of, the earliest first."""
        own = (self._events.get(name) for name in _record_keys(record))
        return sorted((seen for seen in own if seen), key=_PLACE)

    def _stands_alone(self, seen: SeenEvent) -> bool:
        return (seen.provider, seen.event.external_id) not in self._reported

    def relations_from(self, entity: Entity) -> list[SeenRelation]:
        """Return the relations with an entity as the source."""
        return sorted(self._relations_from.get(entity, ()), key=relation_sort_key)

    def relations_to(self, entity: Entity) -> list[SeenRelation]:
        """Return the relations with an entity as the target."""
        return sorted(self._relations_to.get(entity, ()), key=relation_sort_key)

    def find_opinions(self, entity: Entity) -> list[Opinion]:
        """Return the opinions of enrichers on an entity, sorted by enricher."""
        return sorted(
            self._opinions.get(entity, ()),
            key=lambda opinion: (opinion.source, opinion.enrichment.summary),
        )

    def find_disposition(self, entity: Entity) -> Disposition:
        """Return the worst disposition of an entity; benign only if no source says worse."""
        dispositions = {
            opinion.enrichment.disposition for opinion in self._opinions.get(entity, ())
        }
        ranked = (*BAD_DISPOSITIONS, Disposition.BENIGN)
        return next(
            (disposition for disposition in ranked if disposition in dispositions),
            Disposition.UNKNOWN,
        )

    def find_entity_marking(self, entity: Entity) -> Marking:
        """Return the strictest marking of the sources of an entity."""
        return Marking.strictest(self._markings.get(entity, ()))

    def find_sighting(self, entity: Entity) -> Sighting:
        """Return the sighting of an entity; an empty one if there is none."""
        found = self.sightings.get(entity)
        return found[0] if found else Sighting(entity=entity, incident_count=0)

    def is_infrastructure(self, entity: Entity) -> bool:
        """Return whether an entity is internal and in too many incidents to connect them."""
        sighting = self.find_sighting(entity)
        return sighting.internal and sighting.incident_count >= self.everywhere

    def connects(self, entity: Entity) -> bool:
        """Return whether an entity can connect incidents.

        Well-known entities and infrastructure cannot.
        """
        return not self.find_sighting(entity).well_known and not self.is_infrastructure(entity)

    def is_ours(self, entity: Entity) -> bool:
        """Return whether an entity belongs to the organization."""
        return entity.kind in _OF_OURS or self.find_sighting(entity).internal

    def is_foreign(self, entity: Entity) -> bool:
        """Return whether an entity is of a kind that may be external, and not internal."""
        return entity.kind in _OF_OUTSIDE and not self.is_ours(entity)

    def is_outside(self, entity: Entity) -> bool:
        """Return whether an entity is external and not well known."""
        sighting = self.find_sighting(entity)
        is_plain = not sighting.internal and not sighting.well_known
        return entity.kind in _OF_OUTSIDE and is_plain

    def found_entities(self) -> Iterator[Entity]:
        """Yield every entity that was found, examined or not, each once, in order."""
        met = {*self._incidents_with, *self._events_with}
        for relation in self._relations:
            met |= {relation.source, relation.target}
        yield from sorted(met, key=entity_sort_key)


def _record_keys(record: IncidentRecord) -> dict[tuple[object, ...], None]:
    """Return the identifiers of an incident and its alerts at the SIEM, as keys of events."""
    names = (record.external_id, *(alert.external_id for alert in record.alerts))
    return dict.fromkeys((record.provider, name) for name in names if name)


def cite_incidents(records: Iterable[IncidentRecord]) -> list[str]:
    """Return the references of incidents."""
    return [f"incident:{record.number}" for record in records]
