"""Reading the knowledge graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from sqlalchemy import Connection

from tocsin import knowledge
from tocsin.clock import isoformat
from tocsin.errors import CallerError
from tocsin.knowledge import BoundedCount
from tocsin.model import Edge, EntityKind, Neighborhood, Node, NodeKind, RelationType
from tocsin.observables import find_observables
from tocsin.web.context import RequestContext, Response
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.routes.fields import Timestamp

STIX = "application/stix+json"
"""The media type of STIX 2.1 (section 10 of its specification)."""
KINDS: tuple[str, ...] = tuple(map(str, (*EntityKind, *NodeKind)))

LONGEST = 2048
Value = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST, pattern=r"^[^\x00]*$")]


def _kind(text: str) -> str:
    for kind in KINDS:
        if kind.casefold() == text.casefold():
            return kind
    raise ValueError(f"give one of: {', '.join(KINDS)}")


def _split(text: object) -> object:
    return tuple(text.split(",")) if isinstance(text, str) else text


def _comma_separated(words: Iterable[str]) -> WithJsonSchema:
    one = f"({'|'.join(words)})"
    return WithJsonSchema({"type": "string", "pattern": f"^{one}(,{one})*$"})


NodeKindName = Annotated[str, BeforeValidator(_kind)]
Kinds = Annotated[tuple[NodeKindName, ...], BeforeValidator(_split), _comma_separated(KINDS)]
Types = Annotated[
    tuple[Annotated[RelationType, BeforeValidator(RelationType.parse)], ...],
    BeforeValidator(_split),
    _comma_separated(RelationType),
]
_OF_TYPES = f"Only edges of these types, with commas between them: {', '.join(RelationType)}."
_OF_KINDS = "An entity's kind, `incident`, `session` or `technique`"


class _GraphQuery(QueryModel):
    """What of the graph is looked at."""

    kind: NodeKindName | None = Field(
        default=None,
        description=f"{_OF_KINDS}; by default the first of which the value is known.",
        json_schema_extra={"enum": list(KINDS)},
    )
    depth: int = Field(default=1, ge=1, le=knowledge.MAX_DEPTH, description="How many steps to go.")
    limit: int = Field(default=200, ge=1, le=1000, description="How many nodes at most.")
    types: Types | None = Field(default=None, description=_OF_TYPES)
    kinds: Kinds | None = Field(
        default=None, description="Only nodes of these kinds, with commas between them."
    )
    since: Timestamp | None = Field(default=None, description="Only what was seen then or later.")
    until: Timestamp | None = Field(default=None, description="Only what was seen before.")


class GraphEntityQuery(_GraphQuery):
    """How far to look, and at what."""


class GraphExportQuery(_GraphQuery):
    """What to export."""

    value: Value | None = Field(
        default=None,
        description="The value of the node to begin with; by default the latest incidents are "
        "exported, with all that they name.",
    )

    @model_validator(mode="after")
    def _goes_with_a_value(self) -> Self:
        lost = {"kind", "depth", "types", "kinds"} & self.model_fields_set
        if self.value is None and lost:
            raise ValueError(f"{', '.join(sorted(lost))}: give a value to go with it")
        return self


class GraphPathQuery(QueryModel):
    """Where from and where to."""

    from_: Value = Field(alias="from", description="The value of the one end.")
    to: Value = Field(description="The value of the other end.")
    from_kind: NodeKindName | None = Field(
        default=None, description=_OF_KINDS, json_schema_extra={"enum": list(KINDS)}
    )
    to_kind: NodeKindName | None = Field(
        default=None, description=_OF_KINDS, json_schema_extra={"enum": list(KINDS)}
    )
    types: Types | None = Field(default=None, description=_OF_TYPES)


class GraphNode(ResponseModel):
    """A node: an entity, an incident by its number, a session by its id, a technique by its id."""

    kind: str = Field(json_schema_extra={"enum": list(KINDS)})
    value: str


class GraphEdge(ResponseModel):
    """An edge, with what it is known from."""

    source: GraphNode
    type: RelationType
    target: GraphNode
    first_seen: datetime
    last_seen: datetime
    count: int
    known_from: list[str] = Field(
        description="Some of what says so, the latest first: `incident:7`, `session:ses_01...#12` "
        "for a step of a ledger, `session:ses_01...#F2` for a finding, `enricher:rdap`."
    )


class GraphNeighborhood(ResponseModel):
    """The graph around a node."""

    entity: GraphNode
    nodes: list[GraphNode] = Field(description="The nearest first.")
    edges: list[GraphEdge]
    complete: bool = Field(description="False where there is more than was asked for.")


class GraphPath(ResponseModel):
    """A shortest path between two nodes."""

    nodes: list[GraphNode] = Field(description="From the one end to the other; empty for none.")
    edges: list[GraphEdge]
    complete: bool = Field(
        description="False where not every edge was looked at: there may be a shorter one."
    )


class GraphCount(ResponseModel):
    """How many there are of something."""

    name: str
    count: int
    relation: str = Field(
        description="`eq` where `count` is exact, `gte` where there are more.",
        json_schema_extra={"enum": ["eq", "gte"]},
    )


class GraphStatistics(ResponseModel):
    """How large the graph is."""

    nodes: list[GraphCount] = Field(description="By kind.")
    edges: list[GraphCount] = Field(description="By type.")


class StixBundle(BaseModel):
    """A bundle of STIX 2.1 (section 8 of its specification)."""

    model_config = ConfigDict(extra="allow")

    type: str
    id: str
    objects: list[dict[str, Any]]


def get_graph_entity(connection: Connection, call: RequestContext) -> Response:
    """Answer what is known around an entity, each edge with what it is known from."""
    value = call.path["value"]
    if len(value) > LONGEST:
        raise _unknown_node(value)
    node = _find(connection, value, call.query.kind)
    found = _load_neighborhood(connection, node, call.query)
    return Response(
        {
            "entity": _node(found.nodes[0]),
            "nodes": [_node(node) for node in found.nodes],
            "edges": [_edge(edge) for edge in found.edges],
            "complete": found.complete,
        }
    )


def get_graph_path(connection: Connection, call: RequestContext) -> Response:
    """Answer a shortest path between two nodes, of six edges at most."""
    query: GraphPathQuery = call.query
    start = _find(connection, query.from_, query.from_kind)
    end = _find(connection, query.to, query.to_kind)
    path = knowledge.find_path(connection, start, end, types=query.types)
    if path is None:  # a read is not one snapshot
        raise CallerError(404, "One of the two is not known any more.")
    return Response(
        {
            "nodes": [_node(node) for node in path.nodes],
            "edges": [_edge(edge) for edge in path.edges],
            "complete": path.complete,
        }
    )


def get_graph_statistics(connection: Connection, _call: RequestContext) -> Response:
    """Answer how many nodes and edges there are."""
    stats = knowledge.count_graph(connection)
    return Response({"nodes": _counts(stats.nodes), "edges": _counts(stats.edges)})


def export_graph(connection: Connection, call: RequestContext) -> Response:
    """Answer a part of the graph as a bundle of STIX 2.1: around a node, or what came last."""
    found, services = _part(connection, call.query), call.services
    bundle = knowledge.export_stix(
        connection, found, services.markings, public_url=services.public_url
    )
    return Response(bundle)


def _part(connection: Connection, query: GraphExportQuery) -> Neighborhood:
    if query.value is not None:
        return _load_neighborhood(connection, _find(connection, query.value, query.kind), query)
    return knowledge.find_latest_incidents(
        connection, since=query.since, until=query.until, limit=query.limit
    )


def _load_neighborhood(connection: Connection, node: Node, query: _GraphQuery) -> Neighborhood:
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
    """Return the node that a caller means; CallerError (404) where nothing is known of it."""
    for candidate in [kind] if kind else _likely_kinds(value):
        node = knowledge.normalize_node(Node(candidate, value))
        if knowledge.is_known_node(connection, node):
            return node
    raise _unknown_node(value)


def _likely_kinds(value: str) -> Iterable[str]:
    """Return every kind, those first that the value looks like."""
    looks_like = (entity.kind.value for entity in find_observables(value).entities)
    return dict.fromkeys((*looks_like, *KINDS))


def _unknown_node(value: str) -> CallerError:
    shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
    return CallerError(404, f"Nothing is known of {shown!r}.")


_SHOWN = 80


def _counts(counts: Mapping[str, BoundedCount]) -> list[dict[str, Any]]:
    return [
        {"name": name, "count": count.value, "relation": "eq" if count.exact else "gte"}
        for name, count in sorted(counts.items())
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
