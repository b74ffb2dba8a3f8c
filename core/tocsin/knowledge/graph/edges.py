"""Edges between known nodes, each with its sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import cache
from itertools import chain
from typing import Any

from sqlalchemy import Connection, Select, and_, bindparam, select, union

from tocsin.knowledge.graph.filters import GraphFilter
from tocsin.knowledge.graph.steps import STEPS, GraphQueryShape
from tocsin.knowledge.sql_lists import encode_list, select_list
from tocsin.model import Edge, Marking, Node, NodeKind, Pap, RelationType, Tlp
from tocsin.store.tables import (
    incident_entities,
    incident_techniques,
    incidents,
    relation_sources,
    relations,
)

MAX_EDGES = 5_000
"""Maximum number of edges in one result."""
_READ = 20_000  # rows of each kind, most of which lead to nodes outside the result
Occurred = Mapping[int, datetime]
_TLPS, _PAPS = tuple(Tlp), tuple(Pap)


def find_edges_between(
    connection: Connection, nodes: Sequence[Node], view: GraphFilter, parameters: Mapping[str, Any]
) -> tuple[tuple[Edge, ...], bool]:
    """Return the edges that match a filter and have both ends among these nodes, the latest first.

    Only the newest edges of very well-connected nodes are read. The second value is False if there
    are more edges than fit in the result.
    """
    reading = _EdgeReader(
        connection, {**parameters, "nodes": encode_list(nodes), "most": _READ + 1}
    )
    shown = set(nodes)
    reported = chain(_incident_edges(reading, view), _relation_edges(reading, view, shown))
    edges = (edge for edge in reported if edge.source in shown and edge.target in shown)
    return _latest(edges, reading)


def find_incident_edges(
    connection: Connection, nodes: Sequence[Node]
) -> tuple[tuple[Edge, ...], bool]:
    """Return the edges that these incidents define, as `find_edges_between` does."""
    reading = _EdgeReader(connection, {"nodes": encode_list(nodes), "most": _READ + 1})
    return _latest(_incident_edges(reading, GraphFilter()), reading)


def _latest(reported: Iterable[Edge], reading: _EdgeReader) -> tuple[tuple[Edge, ...], bool]:
    edges = sorted(reported, key=lambda edge: edge.last_seen, reverse=True)
    return tuple(edges[:MAX_EDGES]), reading.complete and len(edges) <= MAX_EDGES


class _EdgeReader:
    """Reads rows for a list of nodes, and records whether there were too many."""

    def __init__(self, connection: Connection, parameters: Mapping[str, Any]) -> None:
        self._connection = connection
        self._parameters = parameters
        self.complete = True
        self.dialect = connection.dialect.name

    def rows(self, statement: Select[Any], **parameters: Any) -> Sequence[Any]:
        """Return the rows, up to the read limit."""
        rows = self._connection.execute(statement, {**self._parameters, **parameters}).all()
        self.complete = self.complete and len(rows) <= _READ
        return rows[:_READ]


def _incident_edges(reading: _EdgeReader, view: GraphFilter) -> Iterator[Edge]:
    occurred: dict[int, datetime] = {}
    merged: list[tuple[int, int]] = []
    for number, at, into in reading.rows(_incidents(reading.dialect)):
        if view.includes(at):
            occurred[number] = at
            merged += [(number, into)] if into is not None else []
    if view.wants(RelationType.INVOLVES):
        for number, kind, value in reading.rows(_entities(reading.dialect)):
            yield from _edge(occurred, number, RelationType.INVOLVES, Node(kind, value))
    if view.wants(RelationType.USES):
        for number, technique in reading.rows(_techniques(reading.dialect)):
            node = Node(NodeKind.TECHNIQUE, technique)
            yield from _edge(occurred, number, RelationType.USES, node)
    if view.wants(RelationType.MERGED_INTO):
        for number, into in merged:
            yield from _edge(occurred, number, RelationType.MERGED_INTO, _incident(into))


def _edge(occurred: Occurred, number: int, type_: RelationType, target: Node) -> Iterator[Edge]:
    if number in occurred:
        at = occurred[number]
        yield Edge(
            source=_incident(number),
            type=type_,
            target=target,
            first_seen=at,
            last_seen=at,
            count=1,
            known_from=(f"incident:{number}",),
        )


def _incident(number: int) -> Node:
    return Node(NodeKind.INCIDENT, str(number))


def _relation_edges(
    reading: _EdgeReader, view: GraphFilter, shown: AbstractSet[Node]
) -> Iterator[Edge]:
    rows = reading.rows(_relations(reading.dialect, view.shape)) if view.shape.reported else ()
    ends = {row: _ends(row) for row in rows}
    rows = [row for row in rows if set(ends[row]) <= shown]
    sources: dict[int, list[str]] = {row.id: [] for row in rows}
    for relation, source in reading.rows(_SOURCES, ids=list(sources)):
        sources[relation].append(source)
    for row in rows:
        source, target = ends[row]
        yield Edge(
            source=source,
            type=RelationType(row.type),
            target=target,
            first_seen=row.first_seen,
            last_seen=row.last_seen,
            count=row.count,
            known_from=tuple(sources[row.id]),
            marking=Marking(_TLPS[row.tlp], _PAPS[row.pap]),
        )


def _ends(row: Any) -> tuple[Node, Node]:
    source = Node(row.source_kind, row.source_value)
    return source, Node(row.target_kind, row.target_value)


_MOST: Any = bindparam("most")
_SOURCES = (
    select(relation_sources.c.relation_id, relation_sources.c.source)
    .where(relation_sources.c.relation_id.in_(bindparam("ids", expanding=True)))
    .order_by(relation_sources.c.at.desc(), relation_sources.c.source.desc())
    .limit(_MOST)
)


@cache
def _incidents(dialect: str) -> Select[Any]:
    """Return the statement for the times of incidents, and the incidents they were merged into."""
    nodes, target = select_list(dialect, "nodes"), incidents.alias()
    merged = and_(
        target.c.provider == incidents.c.provider,
        target.c.external_id == incidents.c.merged_into,
    )
    return (
        select(incidents.c.number, incidents.c.occurred_at, target.c.number)
        .select_from(nodes)
        .join(incidents, incidents.c.number == nodes.c.number)
        .outerjoin(target, merged)
        .limit(_MOST)
    )


@cache
def _entities(dialect: str) -> Select[Any]:
    nodes, rows = select_list(dialect, "nodes"), incident_entities.c
    query = select(rows.incident_number, rows.kind, rows.value).select_from(nodes)
    joined = query.join(incident_entities, rows.incident_number == nodes.c.number)
    return joined.order_by(nodes.c.place, rows.kind, rows.value).limit(_MOST)


@cache
def _techniques(dialect: str) -> Select[Any]:
    nodes, rows = select_list(dialect, "nodes"), incident_techniques.c
    query = select(rows.incident_number, rows.technique).select_from(nodes)
    joined = query.join(incident_techniques, rows.incident_number == nodes.c.number)
    return joined.order_by(nodes.c.place, rows.technique).limit(_MOST)


@cache
def _relations(dialect: str, shape: GraphQueryShape) -> Select[Any]:
    nodes = select_list(dialect, "nodes")
    reported = []
    for step in STEPS:
        if step.table is relations:
            rows = relations.alias()
            columns = (rows.c[name] for name in _COLUMNS)
            reported.append(select(*columns).where(*step.conditions(nodes, rows, shape)))
    every = union(*reported).subquery()
    return select(every).limit(_MOST)


_COLUMNS = (
    "id",
    "source_kind",
    "source_value",
    "type",
    "target_kind",
    "target_value",
    "first_seen",
    "last_seen",
    "count",
    "tlp",
    "pap",
)
