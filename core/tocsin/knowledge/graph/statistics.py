"""Counts of nodes and edges in the graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    Connection,
    Select,
    column,
    func,
    literal,
    select,
    table,
    union_all,
)

from tocsin.knowledge.graph.steps import INCIDENT_RELATIONS
from tocsin.model import EntityKind, NodeKind, RelationType
from tocsin.store.tables import (
    entities,
    incident_counts,
    incident_entities,
    incident_techniques,
    incidents,
    relations,
    sessions,
)

MAX_COUNT = 1_000
"""Counts are exact up to here."""


@dataclass(frozen=True, slots=True)
class BoundedCount:
    """A count with an upper bound."""

    value: int
    exact: bool
    """False if there are more than `value`."""


@dataclass(frozen=True, slots=True)
class GraphCounts:
    """Number of nodes of each kind and edges of each type, without those that are 0."""

    nodes: Mapping[str, BoundedCount]
    edges: Mapping[str, BoundedCount]


def count_graph(connection: Connection) -> GraphCounts:
    """Return the size of the graph, with large counts cut at `MAX_COUNT`.

    The count of incidents is exact. Only indexed entities count, those that an incident names.
    """
    stored = int(connection.scalar(select(func.sum(incident_counts.c.count))) or 0)
    nodes = {NodeKind.INCIDENT.value: BoundedCount(stored, exact=True)}
    edges: dict[str, BoundedCount] = {}
    for what, name, counted in connection.execute(_counts()):
        count = BoundedCount(min(counted, MAX_COUNT), exact=counted <= MAX_COUNT)
        (nodes if what == "node" else edges)[name] = count
    return GraphCounts(nodes=_present(nodes), edges=_present(edges))


def _present(counts: Mapping[str, BoundedCount]) -> dict[str, BoundedCount]:
    return {name: count for name, count in counts.items() if count.value}


@cache
def _counts() -> Any:
    one = select(literal(1))
    nodes: dict[str, Select[Any]] = {
        kind.value: one.where(entities.c.kind == kind.value) for kind in EntityKind
    }
    nodes[NodeKind.SESSION] = one.select_from(sessions)
    nodes[NodeKind.TECHNIQUE] = _techniques()
    edges: dict[str, Select[Any]] = {
        type_.value: one.where(relations.c.type == type_.value)
        for type_ in RelationType
        if type_ not in INCIDENT_RELATIONS
    }
    edges[RelationType.INVOLVES] = one.select_from(incident_entities)
    edges[RelationType.USES] = one.select_from(incident_techniques)
    edges[RelationType.MERGED_INTO] = one.where(incidents.c.merged_into.is_not(None))
    return union_all(
        *(_bounded("node", name, query) for name, query in nodes.items()),
        *(_bounded("edge", name, query) for name, query in edges.items()),
    )


def _bounded(what: str, name: str, query: Select[Any]) -> Any:
    rows = query.limit(MAX_COUNT + 1).subquery()
    return select(literal(what), literal(str(name)), func.count()).select_from(rows)


def _techniques() -> Select[Any]:
    """Return each technique once, reading only its first row in the index."""
    rows = incident_techniques.alias()
    first = select(func.min(rows.c.technique).label("technique"))
    names = table("names", column("technique"))
    following = (
        select(func.min(rows.c.technique)).where(rows.c.technique > names.c.technique)
    ).scalar_subquery()
    onward = select(following).where(names.c.technique.is_not(None))
    every = first.union_all(onward).cte("names", recursive=True)
    return select(literal(1)).select_from(every).where(every.c.technique.is_not(None))
