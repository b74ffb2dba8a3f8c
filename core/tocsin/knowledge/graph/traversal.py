"""Traversal of the graph: the neighborhood of a node, and the latest incidents."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    cast,
    column,
    lateral,
    literal,
    or_,
    select,
    table,
    true,
    union,
    union_all,
)

from tocsin.knowledge.graph.edges import find_edges_between, find_incident_edges
from tocsin.knowledge.graph.filters import LATEST, GraphFilter, has_more_edges
from tocsin.knowledge.graph.nodes import is_known_node, is_session_node, normalize_node
from tocsin.knowledge.graph.steps import GraphQueryShape
from tocsin.knowledge.sql_lists import parse_incident_number
from tocsin.model import Neighborhood, Node, NodeKind, RelationType
from tocsin.store import force_index_scans
from tocsin.store.tables import EPOCH, incidents

MAX_DEPTH = 3
_NARROWING = (1, 4, 8)  # divisors of the limit for the neighbors of one node, by depth


@force_index_scans
def find_neighborhood(
    connection: Connection,
    node: Node,
    *,
    depth: int = 1,
    limit: int = 200,
    types: Collection[RelationType] | None = None,
    kinds: Collection[str] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Neighborhood | None:
    """Return the nodes up to `depth` steps (1 to 3) from one, with the edges between them.

    The traversal does not pass through sessions. It returns at most `limit` nodes including the
    start, the nearest first, and follows the newest edges of each type. `types`, `kinds`, `since`
    and `until` exclude all other edges and nodes, except the start. None if it does not exist.
    """
    start = normalize_node(node)
    view = GraphFilter(types=types, kinds=kinds, since=since, until=until)
    fan_out = max(1, limit // _NARROWING[depth - 1])
    parameters = view.parameters(connection, fan_out)
    # a node is found again at other depths, so these rows hold at least limit + 1 nodes
    parameters |= {"depth": depth, "rows": (limit + 1) * (depth + 1)}
    depths = _walk(connection, start, view.shape, parameters)
    if len(depths) == 1 and not is_known_node(connection, start):
        return None
    nodes = list(depths)[:limit]
    gone = [
        node
        for node in nodes
        if depths[node] < depth and (node == start or not is_session_node(node))
    ]
    left_out = len(depths) > limit or has_more_edges(connection, gone, view.shape, parameters)
    edges, every = find_edges_between(connection, nodes, view, parameters)
    return Neighborhood(nodes=tuple(nodes), edges=edges, complete=every and not left_out)


def _walk(
    connection: Connection, start: Node, shape: GraphQueryShape, parameters: dict[str, Any]
) -> dict[Node, int]:
    """Return the nodes in the order in which they were found, each with its depth."""
    node = {"kind": start.kind, "value": start.value, "number": parse_incident_number(start)}
    walk = _statement(connection.dialect.name, shape)
    depths: dict[Node, int] = {}
    for kind, value, far in connection.execute(walk, parameters | node):
        depths.setdefault(Node(kind, value), far)
    return depths


@cache
def _statement(dialect: str, shape: GraphQueryShape) -> Select[Any]:
    """Return the recursive statement, which finds its first rows without all the others."""
    start: Any = select(
        cast(bindparam("kind"), Text).label("kind"),
        cast(bindparam("value"), Text).label("value"),
        cast(bindparam("number"), BigInteger).label("number"),
        cast(literal(0), Integer).label("depth"),
    )
    names = ("kind", "value", "number", "depth")
    walk = table("walk", *(column(name, start.selected_columns[name].type) for name in names))
    onward = _onward_sqlite if dialect == "sqlite" else _onward_postgresql
    found = onward(start, walk, shape).cte("walk", recursive=True)
    return select(found.c.kind, found.c.value, found.c.depth).limit(bindparam("rows"))


def _onward_sqlite(start: Select[Any], walk: FromClause, shape: GraphQueryShape) -> Any:
    """Return the traversal with each step as a term; SQLite takes nodes in given order."""
    steps = [step.select(walk, [walk.c.depth + 1], shape) for step in shape.steps]
    every = union(start, *(step.where(_continues_from(walk)) for step in steps))
    return every.order_by(column("depth"), column("number").desc())


def _onward_postgresql(start: Select[Any], walk: FromClause, shape: GraphQueryShape) -> Any:
    """Return the traversal with one term, the maximum in PostgreSQL; levels come in order."""
    steps = union_all(*(step.select(walk, [], shape) for step in shape.steps))
    found = lateral(steps.order_by(column("number").desc().nulls_last()), "found")
    columns = (found.c.kind, found.c.value, found.c.number, walk.c.depth + 1)
    onward = select(*columns).select_from(walk.join(found, true()))
    return union(start, onward.where(_continues_from(walk)))


def _continues_from(walk: FromClause) -> ColumnElement[bool]:
    """Return whether the traversal continues from a node: from a session only if it starts there.

    Entities in the same investigation may be unrelated.
    """
    passes = or_(walk.c.depth == 0, walk.c.kind != literal(NodeKind.SESSION.value))
    return and_(walk.c.depth < bindparam("depth"), passes)


def find_latest_incidents(
    connection: Connection,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 100,
) -> Neighborhood:
    """Return the latest incidents of a time range, with all nodes that they name.

    At most `limit` incidents, the newest first. To continue, pass the time of the oldest as
    `until`.
    """
    table = incidents.c
    query = (
        select(table.number)
        .where(table.occurred_at >= (since or EPOCH), table.occurred_at < (until or LATEST))
        .order_by(table.occurred_at.desc(), table.number.desc())
        .limit(limit + 1)
    )
    numbers = connection.execute(query).scalars().all()
    nodes = [Node(NodeKind.INCIDENT, str(number)) for number in numbers[:limit]]
    edges, every = find_incident_edges(connection, nodes)
    named = dict.fromkeys([*nodes, *(edge.target for edge in edges)])
    complete = every and len(numbers) <= limit
    return Neighborhood(nodes=tuple(named), edges=edges, complete=complete)
