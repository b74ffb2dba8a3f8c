"""Nodes: normalization and existence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, literal, select

from tocsin.knowledge.sql_lists import MAX_VALUE, parse_incident_number
from tocsin.model import Entity, EntityKind, Node, NodeKind
from tocsin.store import clean_text
from tocsin.store.tables import (
    incident_entities,
    incident_techniques,
    incidents,
    relations,
    sessions,
)


def normalize_node(node: Node) -> Node:
    """Return the node with its value as the graph stores it.

    `Entity` has the canonical spelling, so that reports of one entity share a node.
    """
    number = parse_incident_number(node)
    if number is not None:
        return replace(node, value=str(number))
    if node.kind in set(EntityKind):
        node = Node.of(Entity(EntityKind(node.kind), node.value))
    return replace(node, value=clean_text(node.value, MAX_VALUE))


def is_session_node(node: Node) -> bool:
    """Return whether the node is a session."""
    return node.kind == NodeKind.SESSION


def is_known_node(connection: Connection, node: Node) -> bool:
    """Return whether the graph knows a normalized node."""
    return any(connection.execute(query).first() for query in _records(node))


def _records(node: Node) -> list[Select[Any]]:
    one = select(literal(1)).limit(1)
    mentioned = [
        one.where(relations.c.source_value == node.value, relations.c.source_kind == node.kind),
        one.where(relations.c.target_value == node.value, relations.c.target_kind == node.kind),
    ]
    return [one.where(*_own_record(node)), *mentioned]


def _own_record(node: Node) -> tuple[ColumnElement[bool], ...]:
    match node.kind:
        case NodeKind.INCIDENT:
            return (incidents.c.number == parse_incident_number(node),)
        case NodeKind.SESSION:
            return (sessions.c.id == node.value,)
        case NodeKind.TECHNIQUE:
            return (incident_techniques.c.technique == node.value,)
    table = incident_entities.c
    return table.value == node.value, table.kind == node.kind
