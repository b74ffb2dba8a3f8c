"""Events, opinions and relations with the ledger step that reports them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tocsin import Enrichment, Entity, Relation, SiemEvent, Statement
from tocsin_plugins.investigator.phrases import name_enricher
from tocsin_plugins.investigator.sides import Sides, find_event_sides
from tocsin_plugins.investigator.signs import AttackSign, find_event_signs


@dataclass(frozen=True, slots=True)
class SeenEvent:
    """An event with its provider and the step that found it."""

    provider: str
    event: SiemEvent
    step: str
    signs: frozenset[AttackSign]
    sides: Sides
    place: tuple[object, ...]
    """The sort key of events."""

    @classmethod
    def of(cls, provider: str, event: SiemEvent, step: str) -> SeenEvent:
        """Return an event with its signs, sides and sort key."""
        entities = tuple(sorted(map(entity_sort_key, event.entities)))
        place = (event.occurred_at, provider, event.external_id or "", event.summary, entities)
        signs, sides = find_event_signs(event), find_event_sides(event)
        return cls(provider, event, step, signs, sides, place)


@dataclass(frozen=True, slots=True)
class Opinion:
    """The opinion of an enricher, with the step that gave it."""

    source: str
    enrichment: Enrichment
    step: str

    @property
    def called(self) -> str:
        """The name of the source in sentences."""
        return name_enricher(self.source)


@dataclass(frozen=True, slots=True)
class SeenRelation:
    """A relation with the step that found it."""

    relation: Relation
    step: str


def entity_sort_key(entity: Entity) -> tuple[str, str]:
    """Return the default sort key of entities."""
    return entity.kind.value, entity.value


def cite_steps(seen: Iterable[SeenEvent | SeenRelation | Opinion]) -> list[str]:
    """Return the references of the steps of events, relations or opinions."""
    return [each.step for each in seen]


def relation_sort_key(seen: SeenRelation) -> tuple[object, ...]:
    """Return the sort key of relations."""
    relation = seen.relation
    moment = relation.at.isoformat() if relation.at else ""
    return (
        entity_sort_key(relation.source),
        relation.type.value,
        entity_sort_key(relation.target),
        moment,
    )


def list_evidence(statements: Iterable[Statement]) -> list[str]:
    """Return the references that statements cite."""
    return [reference for statement in statements for reference in statement.evidence]
