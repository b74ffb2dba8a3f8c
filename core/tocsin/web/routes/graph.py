"""Endpoints for the knowledge graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from tocsin import knowledge
from tocsin.clock import isoformat
from tocsin.credentials import Principal, Scope
from tocsin.knowledge import BoundedCount
from tocsin.model import Edge, Neighborhood, Node
from tocsin.observables import find_observables
from tocsin.web.context import Endpoint, RequestContext, Response
from tocsin.web.problems import ProblemError
from tocsin.web.record_problems import NODE_UNKNOWN, PATH_END_REMOVED
from tocsin.web.schemas.graph import (
    KINDS,
    LONGEST,
    GraphEntityQuery,
    GraphExportQuery,
    GraphNeighborhood,
    GraphPath,
    GraphPathQuery,
    GraphQuery,
    GraphStatistics,
    StixBundle,
)

STIX = "application/stix+json"
"""The media type of STIX 2.1 (section 10 of its specification)."""


def get_graph_entity(connection: Connection, call: RequestContext) -> Response:
    """Return the graph around an entity; each edge lists its sources."""
    value = call.path["value"]
    if len(value) > LONGEST:
        raise _unknown_node(value)
    node = _find(connection, value, call.query.kind)
    found = _load_neighborhood(connection, node, call.query)
    return Response(
        {
            "entity": _node(found.nodes[0]),
            "nodes": _describe_nodes(connection, call.principal, found.nodes),
            "edges": [_edge(edge) for edge in found.edges],
            "complete": found.complete,
        }
    )


def get_graph_path(connection: Connection, call: RequestContext) -> Response:
    """Return a shortest path between two nodes, with at most six edges."""
    query: GraphPathQuery = call.query
    start = _find(connection, query.from_, query.from_kind)
    end = _find(connection, query.to, query.to_kind)
    path = knowledge.find_path(connection, start, end, types=query.types)
    if path is None:  # a read is not one snapshot
        raise PATH_END_REMOVED.error()
    return Response(
        {
            "nodes": [_node(node) for node in path.nodes],
            "edges": [_edge(edge) for edge in path.edges],
            "complete": path.complete,
        }
    )


def get_graph_statistics(connection: Connection, _call: RequestContext) -> Response:
    """Return how many nodes of each kind and edges of each type there are."""
    stats = knowledge.count_graph(connection)
    return Response({"nodes": _counts(stats.nodes), "edges": _counts(stats.edges)})


def export_graph(connection: Connection, call: RequestContext) -> Response:
    """Return the graph around a node, or around the latest incidents, as a STIX 2.1 bundle."""
    found, services = _load_part(connection, call.query), call.services
    bundle = knowledge.export_stix(
        connection, found, services.markings, public_url=services.public_url
    )
    return Response(bundle)


def _load_part(connection: Connection, query: GraphExportQuery) -> Neighborhood:
    if query.value is not None:
        return _load_neighborhood(connection, _find(connection, query.value, query.kind), query)
    return knowledge.find_latest_incidents(
        connection, since=query.since, until=query.until, limit=query.limit
    )


def _load_neighborhood(connection: Connection, node: Node, query: GraphQuery) -> Neighborhood:
    found = knowledge.find_neighborhood(
        connection,
        node,
        depth=query.depth,
        limit=query.limit,
        types=query.types,
        kinds=query.kinds,
        since=query.since,
        until=query.until,
    )
    if found is None:
        raise _unknown_node(node.value)
    return found


def _find(connection: Connection, value: str, kind: str | None) -> Node:
    """Return the node for a value; raises ProblemError (404) if it is unknown."""
    for candidate in [kind] if kind else _likely_kinds(value):
        node = knowledge.normalize_node(Node(candidate, value))
        if knowledge.is_known_node(connection, node):
            return node
    raise _unknown_node(value)


def _likely_kinds(value: str) -> Iterable[str]:
    """Return all kinds; the kinds that match the value come first."""
    looks_like = (entity.kind.value for entity in find_observables(value).entities)
    return dict.fromkeys((*looks_like, *KINDS))


def _unknown_node(value: str) -> ProblemError:
    shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
    return NODE_UNKNOWN.error(value=shown)


_SHOWN = 80


def _counts(counts: Mapping[str, BoundedCount]) -> list[dict[str, Any]]:
    return [
        {"name": name, "count": count.value, "relation": "eq" if count.exact else "gte"}
        for name, count in sorted(counts.items())
    ]


def _describe_nodes(
    connection: Connection, reader: Principal, nodes: Sequence[Node]
) -> list[dict[str, Any]]:
    may_read = Scope.INCIDENTS_READ in reader.scopes
    labels = knowledge.load_incident_labels(connection, nodes if may_read else ())
    return [
        {
            **_node(node),
            "title": label.title if (label := labels.get(node)) else None,
            "severity": label and label.severity,
        }
        for node in nodes
    ]


def _node(node: Node) -> dict[str, str]:
    return {"kind": node.kind, "value": node.value}


def _edge(edge: Edge) -> dict[str, Any]:
    return {
        "source": _node(edge.source),
        "type": edge.type,
        "target": _node(edge.target),
        "first_seen": isoformat(edge.first_seen),
        "last_seen": isoformat(edge.last_seen),
        "count": edge.count,
        "known_from": list(edge.known_from),
    }


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/v1/graph/entity/{value}",
        access=Scope.GRAPH_READ,
        summary="Get the graph around an entity",
        handler=get_graph_entity,
        may_lag=True,
        query=GraphEntityQuery,
        response=GraphNeighborhood,
        problems=(NODE_UNKNOWN,),
    ),
    Endpoint(
        method="GET",
        path="/api/v1/graph/path",
        access=Scope.GRAPH_READ,
        summary="Find a shortest path between two nodes",
        handler=get_graph_path,
        may_lag=True,
        query=GraphPathQuery,
        response=GraphPath,
        problems=(NODE_UNKNOWN, PATH_END_REMOVED),
    ),
    Endpoint(
        method="GET",
        path="/api/v1/graph/stats",
        access=Scope.GRAPH_READ,
        summary="Get the size of the graph",
        handler=get_graph_statistics,
        may_lag=True,
        response=GraphStatistics,
    ),
    Endpoint(
        method="GET",
        path="/api/v1/graph/export",
        access=Scope.GRAPH_READ,
        summary="Export the graph around a node (STIX 2.1)",
        handler=export_graph,
        may_lag=True,
        query=GraphExportQuery,
        response=StixBundle,
        media_type=STIX,
        problems=(NODE_UNKNOWN,),
    ),
)
