"""Graph neighbors of an entity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tocsin import (
    Edge,
    Enricher,
    Enrichment,
    Entity,
    EntityKind,
    Node,
    NodeKind,
    RelationType,
)
from tocsin import Neighborhood as Surroundings

_DEPTH = 2
_NODES = 150
_SHOWN = 20


class NeighborhoodEnricher(Enricher):
    """Finds related entities, and the other incidents that involve them."""

    name = "neighbourhood"
    kinds: ClassVar[frozenset[EntityKind]] = frozenset(EntityKind)
    standing = True
    batch = 20

    async def enrich(self, entities: Sequence[Entity]) -> Sequence[Enrichment]:
        """Return the entities that are related to others."""
        enrichments = []
        for entity in entities:
            found = await self.tools.knowledge.neighbors(entity, _DEPTH, _NODES)
            company = _collect_neighbors(Node.of(entity), found)
            if company.related:
                enrichments.append(_build_enrichment(entity, company))
        return enrichments


@dataclass(frozen=True, slots=True)
class _Neighbors:
    related: Mapping[Node, frozenset[RelationType]]
    """Other entities, with the relation."""
    own: frozenset[str]
    """The incidents of the entity itself."""
    incidents: Mapping[Node, Sequence[str]]
    """Other incidents, by related entity; the latest first."""
    complete: bool


def _collect_neighbors(center: Node, found: Surroundings) -> _Neighbors:
    related: dict[Node, set[RelationType]] = defaultdict(set)
    involved: dict[Node, set[str]] = defaultdict(set)
    for edge in found.edges:
        if edge.type is RelationType.INVOLVES:
            involved[edge.target].add(edge.source.value)
        elif center in (edge.source, edge.target) and _is_informative(edge):
            other = edge.target if edge.source == center else edge.source
            if _is_entity(other) and other != center:
                related[other].add(edge.type)
    own = frozenset(involved[center])
    return _Neighbors(
        {node: frozenset(types) for node, types in sorted(related.items(), key=_sort_place)},
        own,
        {node: _sort_latest(involved[node] - own) for node in related},
        found.complete,
    )


def _is_informative(edge: Edge) -> bool:
    """Return whether an edge is known from anything but investigations alone."""
    return any(not source.startswith("session:") for source in edge.known_from)


def _is_entity(node: Node) -> bool:
    return node.kind not in set(NodeKind)


def _sort_place(item: tuple[Node, object]) -> tuple[str, str]:
    return item[0].kind, item[0].value


def _sort_latest(incidents: set[str]) -> list[str]:
    return sorted(incidents, key=lambda number: (len(number), number), reverse=True)


def _build_enrichment(entity: Entity, company: _Neighbors) -> Enrichment:
    others = _sort_latest({number for several in company.incidents.values() for number in several})
    with_others = [node for node in company.related if company.incidents[node]]
    count = len(company.related)
    parts = ["Related to one other entity" if count == 1 else f"Related to {count} other entities"]
    if with_others:
        were = "was" if len(with_others) == 1 else "were"
        which = f"which {were}" if count == 1 else f"of which {len(with_others)} {were}"
        parts.append(f"{which} in other incidents ({_list_some(others)})")
    return Enrichment(
        entity=entity,
        summary=", ".join(parts) + ("" if company.complete else "; there may be more"),
        tags=("known-by-association",) if with_others else (),
        facts={
            "incidents": _sort_latest(set(company.own))[:_SHOWN],
            "incidents_of_related": others[:_SHOWN],
            "related": [_show_entity(node, company) for node in list(company.related)[:_SHOWN]],
            "complete": company.complete,
        },
    )


def _list_some(numbers: Sequence[str]) -> str:
    return ", ".join(numbers[:3]) + (" …" if len(numbers) > 3 else "")  # noqa: PLR2004 - see above


def _show_entity(node: Node, company: _Neighbors) -> dict[str, object]:
    return {
        "kind": node.kind,
        "value": node.value,
        "relations": sorted(company.related[node]),
        "incidents": list(company.incidents[node][:_SHOWN]),
    }
