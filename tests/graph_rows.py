"""Graph rows for tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert

from incident_rows import NOW, add_incidents
from tocsin.knowledge.graph import ObservedRelation, record_relations
from tocsin.model import Node, NodeKind, RelationType
from tocsin.store import Database
from tocsin.store.tables import incident_techniques

IP, DOMAIN = Node("ip", "192.0.2.1"), Node("domain", "bad.example")
HOST, USER = Node("host", "ws-1"), Node("user", "eve")


def incident(number: int) -> Node:
    return Node(NodeKind.INCIDENT, str(number))


def technique(name: str) -> Node:
    return Node(NodeKind.TECHNIQUE, name)


def add_incident(
    connection: Connection,
    *entities: Node,
    techniques: Iterable[str] = (),
    count: int = 1,
    **values: Any,
) -> int:
    """Add incidents that name these entities, and return the number of the last one."""
    pairs = [(node.kind, node.value) for node in entities]
    values["techniques"] = list(techniques)
    numbers = add_incidents(connection, count, entities=pairs, **values)
    rows = [
        {"incident_number": number, "technique": name} for number in numbers for name in techniques
    ]
    if rows:
        connection.execute(insert(incident_techniques), rows)
    return numbers[-1]


class Graph:
    """Writes into a database's graph, and reads from it."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def add(self, *entities: Node, **values: Any) -> Node:
        return incident(await self.database.write(add_incident, *entities, **values))

    async def tell(
        self,
        source: Node,
        type_: RelationType,
        target: Node,
        *,
        at: datetime = NOW,
        known_from: str = "session:ses_1#1",
    ) -> None:
        await self.tell_all([ObservedRelation(source, type_, target, at)], known_from)

    async def tell_all(self, seen: Sequence[ObservedRelation], known_from: str) -> None:
        await self.database.write(record_relations, {known_from: seen})

    async def read(self, operation: Any, *arguments: Any, **options: Any) -> Any:
        return await self.database.read(operation, *arguments, **options)
