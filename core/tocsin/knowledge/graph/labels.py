"""Titles and severities of incidents in a part of the graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, select

from tocsin.model import Node, NodeKind, Severity
from tocsin.store import is_in
from tocsin.store.tables import incidents

_i = incidents.c
_labels = select(_i.number, _i.title, _i.severity).where(is_in(_i.number, "numbers"))


@dataclass(frozen=True, slots=True)
class IncidentLabel:
    """What a reader recognizes an incident by."""

    title: str
    severity: Severity


def load_incident_labels(
    connection: Connection, nodes: Iterable[Node]
) -> dict[Node, IncidentLabel]:
    """Return the labels of the incidents among these nodes."""
    numbers = [int(node.value) for node in nodes if node.kind == NodeKind.INCIDENT]
    rows = connection.execute(_labels, {"numbers": numbers}) if numbers else ()
    return {
        Node(NodeKind.INCIDENT, str(number)): IncidentLabel(title, Severity(severity))
        for number, title, severity in rows
    }
