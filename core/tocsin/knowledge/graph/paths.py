"""Shortest paths between two nodes, searched from both ends."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, Select, bindparam, select, union_all

from tocsin.knowledge.graph.edges import find_edges_between
from tocsin.knowledge.graph.filters import GraphFilter, has_more_edges
from tocsin.knowledge.graph.nodes import is_known_node, is_session_node, normalize_node
from tocsin.knowledge.graph.steps import GraphQueryShape
from tocsin.knowledge.sql_lists import encode_list, select_list
from tocsin.model import Edge, Node, RelationType
from tocsin.store import force_index_scans

FAN_OUT = 25
"""Number of newest edges of each kind that are followed from one node."""
FRONTIER = 200
"""Number of nodes at the same distance that are followed, those found first."""
_ROWS = 2_000  # read in one step


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPath:
    """The result of a path search."""

    nodes: tuple[Node, ...]
    """From one end to the other; empty if there is no path."""
    edges: tuple[Edge, ...]
    """All edges between consecutive nodes."""
    complete: bool
    """False if some edges were not read, so that there may be a shorter path."""


@force_index_scans
def find_path(
    connection: Connection,
    start: Node,
    end: Node,
    *,
    longest: int = 6,
    types: Collection[RelationType] | None = None,
) -> FoundPath | None:
    """Return a shortest path of at most `longest` edges, followed in either direction.

    It does not pass through sessions: entities in the same investigation may be unrelated. With
    `types`, only edges of these types are followed. None if one of the two nodes does not exist.
    """
    here, there = normalize_node(start), normalize_node(end)
    if not (is_known_node(connection, here) and is_known_node(connection, there)):
        return None
    search = _PathSearch(connection, GraphFilter(types=types))
    nodes = search.between(here, there, longest)
    edges, _ = find_edges_between(connection, nodes, search.view, search.parameters)
    following = {frozenset(pair) for pair in pairwise(nodes)}
    shown = tuple(edge for edge in edges if frozenset((edge.source, edge.target)) in following)
    return FoundPath(nodes=tuple(nodes), edges=shown, complete=search.complete)


@dataclass(slots=True)
class _SearchSide:
    """The nodes reached from one end, each with its predecessor."""

    frontier: list[Node]
    reached: dict[Node, Node | None] = field(init=False)

    def __post_init__(self) -> None:
        self.reached = dict.fromkeys(self.frontier)

    def way_to(self, node: Node) -> list[Node]:
        """Return the path from this end to a node that was reached."""
        way = [node]
        while (before := self.reached[way[-1]]) is not None:
            way.append(before)
        return way[::-1]


class _PathSearch:
    def __init__(self, connection: Connection, view: GraphFilter) -> None:
        self._connection = connection
        self._statement = _onward(connection.dialect.name, view.shape)
        self.view = view
        self.parameters = view.parameters(connection, FAN_OUT)
        self.complete = True

    def between(self, start: Node, end: Node, longest: int) -> Sequence[Node]:
        """Return the nodes of a path; nothing if there is none."""
        if start == end:
            return [start]
        sides = _SearchSide([start]), _SearchSide([end])
        for _ in range(longest):
            nearer = min(sides, key=lambda side: len(side.frontier))
            if not nearer.frontier:
                return []
            self._expand(nearer, {start, end})
            for node in nearer.frontier:
                if all(node in side.reached for side in sides):
                    return [*sides[0].way_to(node), *sides[1].way_to(node)[-2::-1]]
            self._narrow(nearer)
        return []

    def _expand(self, side: _SearchSide, ends: Collection[Node]) -> None:
        """Add the nodes one edge further, except sessions that are not an end of the path."""
        found: list[Node] = []
        values = {**self.parameters, "frontier": encode_list(side.frontier), "rows": _ROWS + 1}
        rows = self._connection.execute(self._statement, values).all()
        for kind, value, *origin in rows[:_ROWS]:
            node = Node(kind, value)
            if node not in side.reached and (node in ends or not is_session_node(node)):
                side.reached[node] = Node(*origin)
                found.append(node)
        left_out = len(rows) > _ROWS or has_more_edges(
            self._connection, side.frontier, self.view.shape, self.parameters
        )
        self.complete = self.complete and not left_out
        side.frontier = found

    def _narrow(self, side: _SearchSide) -> None:
        self.complete = self.complete and len(side.frontier) <= FRONTIER
        side.frontier = side.frontier[:FRONTIER]


@cache
def _onward(dialect: str, shape: GraphQueryShape) -> Select[Any]:
    frontier = select_list(dialect, "frontier")
    carried = (frontier.c.kind.label("origin_kind"), frontier.c.value.label("origin_value"))
    steps = union_all(*(step.select(frontier, carried, shape) for step in shape.steps)).subquery()
    columns = (steps.c.kind, steps.c.value, steps.c.origin_kind, steps.c.origin_value)
    return select(*columns).limit(bindparam("rows"))
