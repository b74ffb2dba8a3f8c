"""Storage of relations: unique, counted once per moment, without deadlocks."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from database_statements import noted_statements
from graph_rows import DOMAIN, HOST, IP, USER, incident
from incident_rows import NOW
from tocsin.knowledge.graph import ObservedRelation, find_neighborhood, record_relations
from tocsin.knowledge.graph.relations import MAX_SOURCES
from tocsin.model import Edge, Marking, Node, Pap, RelationType, Tlp
from tocsin.store.sqlite import SqliteDatabase

CONNECTED = RelationType.CONNECTED_TO
MINUTE = timedelta(minutes=1)


async def edge(graph) -> Edge:
    [found] = (await graph.read(find_neighborhood, IP)).edges
    return found


async def test_a_relation_keeps_when_it_was_first_and_last_seen_and_by_whom(graph):
    for minute, known_from in ((1, "session:a#1"), (0, "enricher:rdap"), (2, "session:a#2")):
        await graph.tell(IP, CONNECTED, HOST, at=NOW + minute * MINUTE, known_from=known_from)
    assert await edge(graph) == Edge(
        source=IP,
        type=CONNECTED,
        target=HOST,
        first_seen=NOW,
        last_seen=NOW + 2 * MINUTE,
        count=3,
        known_from=("session:a#2", "session:a#1", "enricher:rdap"),
    )


async def test_a_moment_is_counted_once_whoever_tells_of_it(graph):
    seen = [ObservedRelation(IP, CONNECTED, HOST, NOW + minute * MINUTE) for minute in range(3)]
    for number in range(4):
        await graph.tell_all(seen, f"session:{number}")
    assert (await edge(graph)).count == 3
    await graph.tell(IP, CONNECTED, HOST, at=NOW + MINUTE / 2, known_from="session:5")
    assert (await edge(graph)).count == 3, "it may have been told before"
    for minute in (-1, 4):
        await graph.tell(IP, CONNECTED, HOST, at=NOW + minute * MINUTE, known_from="session:6")
    assert (await edge(graph)).count == 5
    assert len((await edge(graph)).known_from) == 6


async def test_the_strictest_marking_of_what_tells_it_stays_in_each_respect(graph):
    for marking in (Marking(Tlp.CLEAR, Pap.RED), Marking(Tlp.GREEN, Pap.CLEAR)):
        seen = ObservedRelation(IP, CONNECTED, HOST, NOW, marking)
        await graph.tell_all([seen], f"session:{marking.tlp}")
    assert (await edge(graph)).marking == Marking(Tlp.GREEN, Pap.RED)


async def test_the_newest_sources_are_kept_and_a_dropped_one_is_not_counted_again(graph):
    for number in range(MAX_SOURCES + 5):
        await graph.tell(
            IP, CONNECTED, HOST, at=NOW + number * MINUTE, known_from=f"session:{number}"
        )
    await graph.tell(IP, CONNECTED, HOST, at=NOW, known_from="session:0")
    found = await edge(graph)
    assert found.count == MAX_SOURCES + 5
    assert found.known_from == tuple(
        f"session:{MAX_SOURCES + 4 - place}" for place in range(MAX_SOURCES)
    )


@pytest.mark.parametrize(
    ("source", "target"),
    [(IP, IP), (IP, Node("host", " ")), (IP, incident(-1)), (Node("incident", "x"), IP)],
)
async def test_what_relates_nothing_is_left_out(graph, source, target):
    await graph.tell(source, CONNECTED, target)
    assert await graph.read(find_neighborhood, IP) is None


async def test_hostile_values_are_kept_as_the_database_can_hold_them(graph):
    await graph.tell(IP, CONNECTED, Node("file", "a\0b\ud800" + "x" * 5000))
    [found] = (await graph.read(find_neighborhood, IP)).edges
    assert found.target.value.startswith("a\N{REPLACEMENT CHARACTER}b?")
    assert await graph.read(find_neighborhood, found.target)


async def test_relations_are_recorded_side_by_side_without_waiting_in_a_ring(graph):
    seen = [
        ObservedRelation(source, CONNECTED, Node("ip", f"198.51.100.{number}"), NOW)
        for source in (IP, HOST, USER, DOMAIN)
        for number in range(50)
    ]
    await asyncio.gather(
        *(
            graph.tell_all(seen[:: 1 if number % 2 else -1], f"session:{number}")
            for number in range(8)
        )
    )
    found = await graph.read(find_neighborhood, IP)
    assert {edge.count for edge in found.edges} == {1}
    assert all(len(edge.known_from) == 8 for edge in found.edges)


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_nobody_waits_for_who_records_other_relations(graph):
    first, second = (
        {"session:1": [ObservedRelation(IP, CONNECTED, Node("ip", f"198.51.100.{n}"), NOW)]}
        for n in (1, 2)
    )
    async with graph.database._engine.begin() as connection:
        await connection.run_sync(record_relations, first)
        await graph.database.write(record_relations, second)
    assert len((await graph.read(find_neighborhood, IP)).edges) == 2


async def test_a_transaction_may_record_several_times(graph):
    def record(connection, ends) -> None:
        for place, end in enumerate(ends):
            record_relations(
                connection, {f"session:{place}": [ObservedRelation(IP, CONNECTED, end, NOW)]}
            )

    ends = [Node("ip", f"198.51.100.{number}") for number in range(20)]
    await graph.database.write(record, ends)
    await graph.database.write(record, ends[::-1])
    assert len((await graph.read(find_neighborhood, IP)).edges) == 20


async def test_what_very_many_steps_tell_is_stored_in_few_statements(database):
    if not isinstance(database, SqliteDatabase):
        pytest.skip("statements are noted on SQLite")
    many = {
        f"session:a#{step}": [
            ObservedRelation(Node("ip", f"10.0.{step}.{n}"), CONNECTED, HOST, NOW)
            for n in range(100)
        ]
        for step in range(20)
    }
    with noted_statements(database) as statements:
        await database.write(record_relations, many)
    assert len(statements) <= 5 * 4 + 2  # five for each 500 of the 2,000
