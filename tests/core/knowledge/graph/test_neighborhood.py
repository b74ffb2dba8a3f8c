"""Neighborhoods of nodes: depth, filters and sources."""

from __future__ import annotations

from datetime import timedelta

import pytest

from graph_rows import DOMAIN, HOST, IP, USER, incident, technique
from incident_rows import NOW
from tocsin.knowledge.graph import find_neighborhood
from tocsin.model import Edge, Neighborhood, Node, RelationType

DAY = timedelta(days=1)
CONNECTED = RelationType.CONNECTED_TO


def types(found: Neighborhood) -> set[RelationType]:
    return {edge.type for edge in found.edges}


async def test_an_entity_leads_to_its_incidents_and_those_to_all_that_they_name(graph):
    seven = await graph.add(IP, HOST, techniques=["T1110"], occurred_at=NOW)
    near = await graph.read(find_neighborhood, IP)
    assert near.nodes == (IP, seven)
    assert near.edges == (
        Edge(
            source=seven,
            type=RelationType.INVOLVES,
            target=IP,
            first_seen=NOW,
            last_seen=NOW,
            count=1,
            known_from=(f"incident:{seven.value}",),
        ),
    )
    far = await graph.read(find_neighborhood, IP, depth=2)
    assert set(far.nodes) == {IP, seven, HOST, technique("T1110")}
    assert types(far) == {RelationType.INVOLVES, RelationType.USES}
    assert near.complete
    assert far.complete


async def test_every_edge_says_what_it_is_known_from(graph):
    merged = await graph.add(IP, techniques=["T1110"])
    into = await graph.add(HOST, external_id="kept")
    merging = await graph.add(DOMAIN, merged_into="kept")
    await graph.tell(IP, CONNECTED, HOST, known_from="enricher:rdap")
    found = await graph.read(find_neighborhood, HOST, depth=3)
    known = {(edge.source, edge.type): edge.known_from for edge in found.edges}
    assert known[merged, RelationType.USES] == (f"incident:{merged.value}",)
    assert known[merging, RelationType.MERGED_INTO] == (f"incident:{merging.value}",)
    assert known[IP, CONNECTED] == ("enricher:rdap",)
    assert into in found.nodes
    assert all(known.values())


async def test_a_merge_is_gone_in_both_directions(graph):
    kept = await graph.add(external_id="kept")
    merging = await graph.add(merged_into="kept")
    other = await graph.add(provider="another", merged_into="kept")
    assert (await graph.read(find_neighborhood, kept)).nodes == (kept, merging)
    assert (await graph.read(find_neighborhood, merging)).nodes == (merging, kept)
    assert (await graph.read(find_neighborhood, other)).nodes == (other,)


async def test_a_session_leads_to_others_only_where_the_way_begins_there(graph):
    seven = await graph.add(HOST)
    session = Node("session", "ses_1")
    await graph.tell(session, RelationType.EXAMINED, seven)
    await graph.tell(session, RelationType.FOUND, IP)
    of_session = await graph.read(find_neighborhood, session, depth=3)
    assert set(of_session.nodes) == {session, seven, IP, HOST}
    for end, others in ((IP, ()), (seven, (HOST,))):
        found = await graph.read(find_neighborhood, end, depth=3)
        assert set(found.nodes) == {end, session, *others}
        assert found.complete


async def test_a_cycle_is_gone_around_once(graph):
    for source, target in ((IP, HOST), (HOST, USER), (USER, IP)):
        await graph.tell(source, CONNECTED, target)
    found = await graph.read(find_neighborhood, IP, depth=3)
    assert sorted(found.nodes, key=str) == sorted({IP, HOST, USER}, key=str)
    assert len(found.edges) == 3
    assert found.complete


async def test_types_take_all_other_edges_out(graph):
    await graph.add(IP, HOST, techniques=["T1110"])
    await graph.tell(IP, CONNECTED, DOMAIN)
    await graph.tell(IP, RelationType.RESOLVES_TO, USER)
    connected = await graph.read(find_neighborhood, IP, depth=3, types=[CONNECTED])
    assert connected.nodes == (IP, DOMAIN)
    assert types(connected) == {CONNECTED}
    involved = await graph.read(find_neighborhood, IP, depth=3, types=[RelationType.INVOLVES])
    assert types(involved) == {RelationType.INVOLVES}
    assert HOST in involved.nodes


async def test_kinds_take_all_other_nodes_out(graph):
    seven = await graph.add(IP, HOST, DOMAIN)
    await graph.tell(DOMAIN, CONNECTED, USER)
    found = await graph.read(find_neighborhood, IP, depth=3, kinds=["incident", "host"])
    assert found.nodes == (IP, seven, HOST)


async def test_only_what_was_seen_in_the_time_is_gone(graph):
    old = await graph.add(IP, occurred_at=NOW - 2 * DAY)
    new = await graph.add(IP, occurred_at=NOW)
    await graph.tell(IP, CONNECTED, HOST, at=NOW - 2 * DAY)
    since = await graph.read(find_neighborhood, IP, since=NOW - DAY)
    assert since.nodes == (IP, new)
    until = await graph.read(find_neighborhood, IP, until=NOW)
    assert set(until.nodes) == {IP, old, HOST}
    assert since.complete
    assert until.complete


async def test_a_hub_costs_no_more_than_is_shown_and_shows_its_newest(graph):
    last = await graph.add(IP, HOST, count=120)
    found = await graph.read(find_neighborhood, IP, limit=20)
    assert len(found.nodes) == 20
    assert found.nodes[1] == last
    assert not found.complete
    deep = await graph.read(find_neighborhood, IP, depth=3, limit=40)
    assert len(deep.nodes) <= 40
    assert HOST in deep.nodes
    assert not deep.complete


async def test_an_earlier_time_of_a_hub_is_found_below_the_newest(graph):
    early = await graph.add(IP, occurred_at=NOW - 2 * DAY)
    await graph.add(IP, count=50, occurred_at=NOW)
    found = await graph.read(find_neighborhood, IP, limit=10, until=NOW - DAY)
    assert found.nodes == (IP, early)
    assert found.complete


async def test_a_hub_is_complete_where_all_of_the_time_is_shown(graph):
    await graph.add(IP, count=50, occurred_at=NOW - 2 * DAY)
    late = await graph.add(IP, occurred_at=NOW)
    found = await graph.read(find_neighborhood, IP, limit=10, since=NOW - DAY)
    assert found.nodes == (IP, late)
    assert found.complete


@pytest.mark.parametrize(
    "node",
    [IP, incident(7), Node("incident", "seven"), technique("T1"), Node("session", "x\0"), USER],
)
async def test_what_is_not_known_has_no_neighborhood(graph, node):
    await graph.add(HOST)
    assert await graph.read(find_neighborhood, node) is None


async def test_a_node_is_known_also_where_nothing_is_left_of_its_edges(graph):
    seven = await graph.add(IP)
    found = await graph.read(find_neighborhood, seven, since=NOW + DAY)
    assert found == Neighborhood(nodes=(seven,), edges=(), complete=True)


async def test_an_entity_is_found_however_it_is_spelt(graph):
    await graph.add(Node("domain", "bad.example"))
    found = await graph.read(find_neighborhood, Node("domain", "BAD.example."))
    assert found.nodes[0] == DOMAIN
    assert len(found.nodes) == 2
