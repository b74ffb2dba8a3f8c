"""Filters on the graph: relation types, node kinds and times."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, Select, literal, or_, select

from tocsin.knowledge.graph.steps import INCIDENT_RELATIONS, GraphQueryShape
from tocsin.knowledge.latest_rows import HIGHEST, find_highest_number
from tocsin.knowledge.sql_lists import encode_list, select_list
from tocsin.model import Node, RelationType
from tocsin.store.tables import EPOCH

LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFilter:
    """The part of the graph that a query covers."""

    types: Collection[RelationType] | None = None
    kinds: Collection[str] | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def shape(self) -> GraphQueryShape:
        """The part of the filter that determines the SQL statement."""
        types = frozenset(RelationType) if self.types is None else frozenset(self.types)
        return GraphQueryShape(
            of_incidents=types & INCIDENT_RELATIONS,
            reported=bool(types - INCIDENT_RELATIONS),
            typed=self.types is not None,
            kinds=self.kinds is not None,
            timed=self.since is not None or self.until is not None,
        )

    def wants(self, type_: RelationType) -> bool:
        """Return whether edges of this type match."""
        return self.types is None or type_ in self.types

    def includes(self, moment: datetime) -> bool:
        """Return whether an edge that was seen only at this moment matches."""
        return (self.since or EPOCH) <= moment < (self.until or LATEST)

    def parameters(self, connection: Connection, fan_out: int) -> dict[str, Any]:
        """Return the parameters of the statements of this shape."""
        values: dict[str, Any] = {
            "fan_out": fan_out,
            "highest": HIGHEST
            if self.until is None
            else find_highest_number(connection, self.until),
        }
        if self.shape.timed:
            values |= {"since": self.since or EPOCH, "until": self.until or LATEST}
        if self.types is not None:
            values["types"] = sorted(self.types)
        if self.kinds is not None:
            values["kinds"] = sorted(self.kinds)
        return values


def has_more_edges(
    connection: Connection,
    nodes: Sequence[Node],
    shape: GraphQueryShape,
    parameters: Mapping[str, Any],
) -> bool:
    """Return whether any of these nodes has more matching edges than are read."""
    statement = _further(connection.dialect.name, shape)
    return (
        connection.execute(statement, {**parameters, "gone": encode_list(nodes)}).first()
        is not None
    )


@cache
def _further(dialect: str, shape: GraphQueryShape) -> Select[Any]:
    gone = select_list(dialect, "gone")
    beyond = (step.left_out(gone, shape) for step in shape.steps if step.newest)
    return select(literal(1)).select_from(gone).where(or_(*beyond)).limit(1)
