"""The latest of the graph, for whoever asks for no node."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, select

from tocsin.knowledge.graph.edges import find_incident_edges
from tocsin.knowledge.graph.looking import LATEST
from tocsin.model import Neighborhood, Node, NodeKind
from tocsin.store.tables import EPOCH, incidents


def find_latest_incidents(
    connection: Connection,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 100,
) -> Neighborhood:
    """Return the latest incidents that occurred in a time, with all that they name.

    At most `limit` incidents, the newest first; to go on, ask for those until the oldest of them.
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
