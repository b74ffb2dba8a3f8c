"""Counts of nodes and edges."""

from __future__ import annotations

from sqlalchemy import insert

from graph_rows import HOST, IP
from incident_rows import NOW
from tocsin.knowledge.graph import BoundedCount, count_graph, statistics
from tocsin.model import RelationType
from tocsin.store.tables import entities


async def index(graph, *nodes) -> None:
    rows = [
        {
            "kind": node.kind,
            "value": node.value,
            "incident_count": 1,
            "first_seen": NOW,
            "last_seen": NOW,
            "last_incident": 1,
        }
        for node in nodes
    ]
    await graph.database.write(lambda connection: connection.execute(insert(entities), rows))


async def test_an_empty_graph_has_nothing(graph):
    stats = await graph.read(count_graph)
    assert stats.nodes == stats.edges == {}


async def test_what_there_is_is_counted_by_kind_and_type(graph):
    await graph.add(IP, HOST, techniques=["T1110", "T1059"])
    await graph.add(IP, techniques=["T1110"], merged_into="kept")
    await index(graph, IP, HOST)
    await graph.tell(IP, RelationType.CONNECTED_TO, HOST)
    stats = await graph.read(count_graph)
    exactly = {name: count.value for name, count in stats.nodes.items() if count.exact}
    assert exactly == {"incident": 2, "ip": 1, "host": 1, "technique": 2}
    edges = {name: count.value for name, count in stats.edges.items() if count.exact}
    assert edges == {"involves": 3, "uses": 3, "merged-into": 1, "connected-to": 1}


async def test_what_is_large_is_said_to_be_at_least_so_large(graph, monkeypatch):
    monkeypatch.setattr(statistics, "MAX_COUNT", 2)
    statistics._counts.cache_clear()
    await graph.add(IP, count=3)
    stats = await graph.read(count_graph)
    statistics._counts.cache_clear()
    assert stats.edges["involves"] == BoundedCount(2, exact=False)
    assert stats.nodes["incident"] == BoundedCount(3, exact=True)
