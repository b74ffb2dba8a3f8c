"""Shortest paths, and incomplete searches."""

from __future__ import annotations

from graph_rows import DOMAIN, HOST, IP, USER
from tocsin.knowledge.graph import find_path
from tocsin.model import RelationType


async def test_a_path_leads_over_incidents_and_relations(graph):
    first = await graph.add(IP, DOMAIN)
    second = await graph.add(HOST)
    await graph.tell(DOMAIN, RelationType.RESOLVES_TO, HOST)
    path = await graph.read(find_path, IP, second)
    assert path.nodes == (IP, first, DOMAIN, HOST, second)
    assert len(path.edges) == 4
    assert all(edge.known_from for edge in path.edges)
    assert path.complete


async def test_a_path_is_as_long_as_is_allowed_and_no_longer(graph):
    await graph.add(IP, DOMAIN)
    await graph.add(DOMAIN, HOST)
    assert len((await graph.read(find_path, IP, HOST, longest=4)).nodes) == 5
    none = await graph.read(find_path, IP, HOST, longest=3)
    assert none.nodes == ()
    assert none.edges == ()


async def test_a_node_is_no_way_from_itself(graph):
    await graph.add(IP)
    path = await graph.read(find_path, IP, IP)
    assert path.nodes == (IP,)
    assert path.edges == ()


async def test_there_is_no_path_between_what_is_apart(graph):
    await graph.add(IP)
    await graph.add(HOST)
    path = await graph.read(find_path, IP, HOST)
    assert path.nodes == ()
    assert path.complete


async def test_what_is_not_known_has_no_paths(graph):
    await graph.add(IP)
    assert await graph.read(find_path, IP, USER) is None
    assert await graph.read(find_path, USER, IP) is None


async def test_types_leave_shorter_ways_out(graph):
    await graph.add(IP, techniques=["T1110"])
    await graph.add(HOST, techniques=["T1110"])
    assert (await graph.read(find_path, IP, HOST)).nodes
    assert not (await graph.read(find_path, IP, HOST, types=[RelationType.INVOLVES])).nodes


async def test_a_hub_is_looked_at_in_part_and_that_is_said(graph):
    await graph.add(IP, USER)
    await graph.add(IP, count=60)
    await graph.add(HOST)
    path = await graph.read(find_path, IP, HOST)
    assert path.nodes == ()
    assert not path.complete
