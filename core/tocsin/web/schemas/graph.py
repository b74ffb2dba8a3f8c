"""Schemas of the knowledge graph."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from tocsin import knowledge
from tocsin.model import EntityKind, Json, NodeKind, RelationType, Severity
from tocsin.web.parsing import QueryModel, ResponseModel
from tocsin.web.schemas.fields import Timestamp

KINDS: tuple[str, ...] = tuple(map(str, (*EntityKind, *NodeKind)))

LONGEST = 2048

Value = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST, pattern=r"^[^\x00]*$")]


def _kind(text: str) -> str:
    for kind in KINDS:
        if kind.casefold() == text.casefold():
            return kind
    raise ValueError(f"use one of: {', '.join(KINDS)}")


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

_OF_TYPES = "Edge types (`RelationType`) to include, separated by commas."


class GraphQuery(QueryModel):
    """Query parameters that select a part of the graph."""

    kind: NodeKindName | None = Field(
        default=None,
        description="Kind of the node; by default, the first kind that has the value.",
        json_schema_extra={"enum": list(KINDS)},
    )
    depth: int = Field(
        default=1, ge=1, le=knowledge.MAX_DEPTH, description="Maximum distance in edges."
    )
    limit: int = Field(default=200, ge=1, le=1000, description="Maximum number of nodes.")
    types: Types | None = Field(default=None, description=_OF_TYPES)
    kinds: Kinds | None = Field(
        default=None, description="Node kinds to include, separated by commas."
    )
    since: Timestamp | None = Field(
        default=None, description="Only edges whose `last_seen` is at or after this time."
    )
    until: Timestamp | None = Field(
        default=None, description="Only edges whose `first_seen` is before this time."
    )


class GraphEntityQuery(GraphQuery):
    """Query parameters that select the neighborhood of a node."""


class GraphExportQuery(GraphQuery):
    """Query parameters that select the part of the graph to export."""

    value: Value | None = Field(
        default=None,
        description="Value of the start node. By default, the bundle contains the latest "
        "incidents and their neighbors.",
    )

    @model_validator(mode="after")
    def _goes_with_a_value(self) -> Self:
        fields = type(self).model_fields  # generated clients send the defaults
        conditions = ("depth", "kind", "kinds", "types")
        lost = [name for name in conditions if getattr(self, name) != fields[name].default]
        if self.value is None and lost:
            names = ", ".join(lost)
            raise ValueError(f"{names}: these parameters require `value`; set it, or omit them")
        return self


class GraphPathQuery(QueryModel):
    """Start and end of a path."""

    from_: Value = Field(alias="from", description="Value of the first node.")
    to: Value = Field(description="Value of the last node.")
    from_kind: NodeKindName | None = Field(
        default=None, description="Kind of the first node.", json_schema_extra={"enum": list(KINDS)}
    )
    to_kind: NodeKindName | None = Field(
        default=None, description="Kind of the last node.", json_schema_extra={"enum": list(KINDS)}
    )
    types: Types | None = Field(default=None, description=_OF_TYPES)


class GraphNode(ResponseModel):
    """A node. The value of an incident, session or technique is its number or ID."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"value": "203.0.113.7"}

    kind: str = Field(json_schema_extra={"enum": list(KINDS)})
    value: str


class LabeledNode(GraphNode):
    """A node. For an incident, the node also has a title and a severity."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "title": "Many failed sign-ins, then one that succeeded",
        "severity": "High",
    }

    title: str | None = Field(
        description="Title of the incident; null for other nodes, and for "
        "callers without `incidents:read`."
    )
    severity: Severity | None = Field(
        description="Severity of the incident; null in the same cases as `title`."
    )


class GraphEdge(ResponseModel):
    """An edge with its sources."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "source": {"kind": "incident", "value": "4711"},
        "known_from": ["incident:4711"],
    }

    source: GraphNode
    type: RelationType
    target: GraphNode
    first_seen: datetime
    last_seen: datetime
    count: int
    known_from: list[str] = Field(
        description="Latest sources of the edge, newest first, such as `incident:7`, "
        "`session:ses_01...#12` (a step), `session:ses_01...#F2` (a finding) or "
        "`enricher:rdap`."
    )


class GraphNeighborhood(ResponseModel):
    """The graph around a node."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "nodes": [
            {"kind": "ip", "value": "203.0.113.7", "title": None, "severity": None},
            {"kind": "incident", "value": "4711", "title": "Odd sign-in", "severity": "High"},
        ],
        "complete": True,
    }

    entity: GraphNode
    nodes: list[LabeledNode] = Field(description="Nodes, nearest first.")
    edges: list[GraphEdge]
    complete: bool = Field(
        description="False if the response omits nodes or edges because of a limit."
    )


class GraphPath(ResponseModel):
    """A shortest path between two nodes."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "nodes": [{"kind": "ip", "value": "203.0.113.7"}, {"kind": "incident", "value": "4711"}],
        "complete": True,
    }

    nodes: list[GraphNode] = Field(
        description="Nodes of the path, in order; empty if there is no path."
    )
    edges: list[GraphEdge]
    complete: bool = Field(
        description="False if the search reached a limit, so that a shorter path might exist."
    )


class GraphCount(ResponseModel):
    """Number of nodes of a kind or edges of a type."""

    EXAMPLE: ClassVar[dict[str, Json]] = {"name": "incident", "count": 48_213}

    name: str
    count: int
    relation: str = Field(
        description="`eq` if `count` is exact, `gte` if it is a lower bound.",
        json_schema_extra={"enum": ["eq", "gte"]},
    )


class GraphStatistics(ResponseModel):
    """Size of the graph."""

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "edges": [{"name": "involves", "count": 1000, "relation": "gte"}]
    }

    nodes: list[GraphCount] = Field(description="Number of nodes, by kind.")
    edges: list[GraphCount] = Field(description="Number of edges, by type.")


class StixBundle(BaseModel):
    """A STIX 2.1 bundle (section 8 of the specification)."""

    model_config = ConfigDict(extra="allow")

    EXAMPLE: ClassVar[dict[str, Json]] = {
        "type": "bundle",
        "id": "bundle--5f2a1c44-0a6d-5f0e-9d0c-3f6b8d1e7a20",
        "objects": [
            {
                "type": "ipv4-addr",
                "spec_version": "2.1",
                "id": "ipv4-addr--9ddd739e-87b1-587d-83f2-62ef1130af2f",
                "value": "203.0.113.7",
            }
        ],
    }

    type: str
    id: str
    objects: list[dict[str, Any]]
