"""Events, opinions and relations with the ledger step that reports them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tocsin import Enrichment, Entity, Relation, SiemEvent
from tocsin_plugins.investigator.phrases import source_called
from tocsin_plugins.investigator.signs import AttackSign, find_event_signs


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """An event, the provider that told it, and the step in which it did."""

    provider: str
    event: SiemEvent
    step: str
    signs: frozenset[AttackSign]
    place: tuple[object, ...]
    """What events are sorted by."""

    @classmethod
    def of(cls, provider: str, event: SiemEvent, step: str) -> SeenEvent:
        """Return an event with what it shows, which is asked for often."""
        entities = tuple(sorted(map(entity_sort_key, event.entities)))
        place = (event.occurred_at, provider, event.external_id or "", event.summary, entities)
        return cls(provider, event, step, find_event_signs(event), place)


@dataclass(frozen=True, slots=True)
class Opinion:
    """What an enricher said, and the step in which it did."""

    source: str
    enrichment: Enrichment
    step: str

    @property
    def called(self) -> str:
        """What a sentence calls who said it."""
        return source_called(self.source)


@dataclass(frozen=True, slots=True)
class SeenRelation:
    """A relation, and the step in which it was told."""

    relation: Relation
    step: str


def entity_sort_key(entity: Entity) -> tuple[str, str]:
    """Return what entities are sorted by where nothing else tells them apart."""
    return entity.kind.value, entity.value


def cite_steps(seen: Iterable[SeenEvent | SeenRelation | Opinion]) -> list[str]:
    """Return the references of the steps in which something was told."""
    return [it.step for it in seen]


def relation_sort_key(seen: SeenRelation) -> tuple[object, ...]:
    """Return what relations are sorted by."""
    relation = seen.relation
    moment = relation.at.isoformat() if relation.at else ""
    return (
        entity_sort_key(relation.source),
        relation.type.value,
        entity_sort_key(relation.target),
        moment,
    )
