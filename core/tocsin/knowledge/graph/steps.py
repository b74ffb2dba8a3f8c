"""Traversal steps: the rows of each table that lead from a node to others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    FromClause,
    ScalarSelect,
    Select,
    Text,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    null,
    select,
)

from tocsin.model import NodeKind, RelationType
from tocsin.store.tables import (
    Timestamp,
    incident_entities,
    incident_techniques,
    incidents,
    relations,
)

Conditions = tuple[ColumnElement[bool], ...]
NodeColumns = tuple[ColumnElement[Any], ColumnElement[Any], ColumnElement[Any]]

INCIDENT_RELATIONS = frozenset({RelationType.INVOLVES, RelationType.USES, RelationType.MERGED_INTO})
"""Relations that incidents themselves define."""
# No incident in the time range has a higher number
_highest: ColumnElement[int] = bindparam("highest", type_=BigInteger)
_since, _until = bindparam("since", type_=Timestamp), bindparam("until", type_=Timestamp)


@dataclass(frozen=True, slots=True)
class GraphQueryShape:
    """The parts of a filter that change the SQL statement; the rest are parameters."""

    of_incidents: frozenset[RelationType] = INCIDENT_RELATIONS
    """The relations defined by incidents that are followed."""
    reported: bool = True
    """Whether relations from other sources are followed."""
    typed: bool = False
    """Whether only relations of `types` are followed."""
    kinds: bool = False
    """Whether only nodes of `kinds` are reached."""
    timed: bool = False
    """Whether only edges seen from `since` on, and before `until`, are followed."""

    @property
    def steps(self) -> tuple[GraphStep, ...]:
        """The steps along such edges."""
        return tuple(
            step
            for step in STEPS
            if (step.type in self.of_incidents if step.type else self.reported)
        )


@dataclass(frozen=True, slots=True)
class GraphStep:
    """One kind of step from a node. `type` is None if each row has its own."""

    type: RelationType | None
    table: FromClause
    link: Callable[[FromClause, FromClause], Conditions]
    """Conditions that tie the rows to the node of origin."""
    during: Callable[[FromClause, FromClause], Conditions]
    """Conditions that tie the rows to the time range."""
    leads_to: Callable[[FromClause], NodeColumns]
    """The kind and value of the other node and, for an incident, its number."""
    newest: str | None = None
    """The column that is highest in the newest rows; None if there are never many rows."""

    def select(
        self, origin: FromClause, carried: Sequence[ColumnElement[Any]], shape: GraphQueryShape
    ) -> Select[Any]:
        """Return the nodes one step from those of `origin`, with the columns `carried`."""
        rows = self.table.alias()
        kind, value, number = self.leads_to(rows)
        found = (kind.label("kind"), value.label("value"), number.label("number"))
        query = select(*found, *carried).where(*self.conditions(origin, rows, shape))
        if shape.kinds:
            query = query.where(kind.in_(bindparam("kinds", expanding=True)))
        return query.correlate(origin)

    def conditions(
        self, origin: FromClause, rows: FromClause, shape: GraphQueryShape
    ) -> Conditions:
        """Return the conditions on the rows that are followed from the nodes of `origin`."""
        wanted = list(self.link(origin, rows))
        if self.newest is not None:
            oldest = self.nth(origin, bindparam("fan_out") - 1)
            wanted.append(rows.c[self.newest] >= func.coalesce(oldest, 0))
        if shape.timed:
            wanted += self.during(origin, rows)
        if shape.typed and self.type is None:
            wanted.append(rows.c.type.in_(bindparam("types", expanding=True)))
        return tuple(wanted)

    def left_out(self, origin: FromClause, shape: GraphQueryShape) -> ColumnElement[bool]:
        """Return whether a node of `origin` has rows beyond the newest, in the time range."""
        beyond = self.nth(origin, bindparam("fan_out"))
        if not shape.timed or self.table is relations:
            return beyond.is_not(None)
        # an incident's number; incidents with lower numbers occurred earlier, or nearly so
        late = (incidents.c.number == beyond, incidents.c.occurred_at >= _since)
        return select(literal(1)).where(*late).correlate(origin).exists()

    def nth(self, origin: FromClause, place: ColumnElement[int]) -> ScalarSelect[Any]:
        """Return the value of `newest` in the row at this place, from 0; null if there is none.

        `newest` must not be None.
        """
        rows = self.table.alias()
        column = rows.c[self.newest or ""]
        ordered = select(column).where(*self.link(origin, rows)).order_by(column.desc())
        return ordered.limit(1).offset(place).correlate(origin).scalar_subquery()


def _text(value: ColumnElement[Any]) -> ColumnElement[Any]:
    return cast(value, Text)


def _incident(number: ColumnElement[Any]) -> NodeColumns:
    return _text(literal(NodeKind.INCIDENT.value)), _text(number), number


def _other(kind: ColumnElement[Any], value: ColumnElement[Any]) -> NodeColumns:
    return _text(kind), _text(value), cast(null(), BigInteger)


def _either(kind: ColumnElement[Any], value: ColumnElement[Any]) -> NodeColumns:
    is_incident = kind == NodeKind.INCIDENT.value
    return _text(kind), _text(value), case((is_incident, cast(value, BigInteger)))


def _names_entity(origin: FromClause, rows: FromClause) -> Conditions:
    same = (rows.c.value == origin.c.value, rows.c.kind == origin.c.kind)
    return (*same, rows.c.incident_number <= _highest)


def _names_technique(origin: FromClause, rows: FromClause) -> Conditions:
    is_technique = origin.c.kind == NodeKind.TECHNIQUE.value
    same = (rows.c.technique == origin.c.value, is_technique)
    return (*same, rows.c.incident_number <= _highest)


def _of_incident(origin: FromClause, rows: FromClause) -> Conditions:
    return (rows.c.incident_number == origin.c.number,)


def _merged(origin: FromClause, rows: FromClause) -> Conditions:
    return (rows.c.source == origin.c.number,)


def _merged_from(origin: FromClause, rows: FromClause) -> Conditions:
    return (rows.c.target == origin.c.number,)


def _is_source(origin: FromClause, rows: FromClause) -> Conditions:
    return rows.c.source_value == origin.c.value, rows.c.source_kind == origin.c.kind


def _is_target(origin: FromClause, rows: FromClause) -> Conditions:
    return rows.c.target_value == origin.c.value, rows.c.target_kind == origin.c.kind


def _rows_incident_occurred(_origin: FromClause, rows: FromClause) -> Conditions:
    return _occurred(rows.c.incident_number, rows)


def _left_incident_occurred(origin: FromClause, _rows: FromClause) -> Conditions:
    return _occurred(origin.c.number, origin)


def _occurred(number: ColumnElement[Any], of: FromClause) -> Conditions:
    incident = incidents.alias()
    times = (incident.c.occurred_at >= _since, incident.c.occurred_at < _until)
    found = select(literal(1)).where(incident.c.number == number, *times)
    return (found.correlate(of).exists(),)


def _row_occurred(_origin: FromClause, rows: FromClause) -> Conditions:
    return rows.c.occurred_at >= _since, rows.c.occurred_at < _until


def _row_seen(_origin: FromClause, rows: FromClause) -> Conditions:
    return rows.c.last_seen >= _since, rows.c.first_seen < _until


_from, _into = incidents.alias(), incidents.alias()
_merges = (
    select(_from.c.number.label("source"), _into.c.number.label("target"), _from.c.occurred_at)
    .join(
        _into,
        and_(_into.c.provider == _from.c.provider, _into.c.external_id == _from.c.merged_into),
    )
    .subquery()
)
STEPS = (
    GraphStep(
        type=RelationType.INVOLVES,
        table=incident_entities,
        link=_names_entity,
        during=_rows_incident_occurred,
        leads_to=lambda rows: _incident(rows.c.incident_number),
        newest="incident_number",
    ),
    GraphStep(
        type=RelationType.INVOLVES,
        table=incident_entities,
        link=_of_incident,
        during=_left_incident_occurred,
        leads_to=lambda rows: _other(rows.c.kind, rows.c.value),
    ),
    GraphStep(
        type=RelationType.USES,
        table=incident_techniques,
        link=_names_technique,
        during=_rows_incident_occurred,
        leads_to=lambda rows: _incident(rows.c.incident_number),
        newest="incident_number",
    ),
    GraphStep(
        type=RelationType.USES,
        table=incident_techniques,
        link=_of_incident,
        during=_left_incident_occurred,
        leads_to=lambda rows: _other(literal(NodeKind.TECHNIQUE.value), rows.c.technique),
    ),
    GraphStep(
        type=RelationType.MERGED_INTO,
        table=_merges,
        link=_merged,
        during=_row_occurred,
        leads_to=lambda rows: _incident(rows.c.target),
    ),
    GraphStep(
        type=RelationType.MERGED_INTO,
        table=_merges,
        link=_merged_from,
        during=_row_occurred,
        leads_to=lambda rows: _incident(rows.c.source),
        newest="source",
    ),
    GraphStep(
        type=None,
        table=relations,
        link=_is_source,
        during=_row_seen,
        leads_to=lambda rows: _either(rows.c.target_kind, rows.c.target_value),
        newest="id",
    ),
    GraphStep(
        type=None,
        table=relations,
        link=_is_target,
        during=_row_seen,
        leads_to=lambda rows: _either(rows.c.source_kind, rows.c.source_value),
        newest="id",
    ),
)
