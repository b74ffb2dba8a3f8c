"""Graph queries compared with a plain search of the same graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from graph_rows import DOMAIN, HOST, IP, USER, add_incident, incident, technique
from incident_rows import NOW
from tocsin.knowledge.graph import ObservedRelation, find_neighborhood, find_path, record_relations
from tocsin.model import Node, RelationType

ENTITIES = (IP, DOMAIN, HOST, USER)
TOLD = (RelationType.CONNECTED_TO, RelationType.RESOLVES_TO)
DAYS = st.integers(0, 3)
ROOMY = {"limit": 1000}
Edge = tuple[Node, RelationType, Node]


@dataclass
class Plain:
    """A graph as Python holds it: each edge with when it was seen."""

    edges: dict[Edge, datetime] = field(default_factory=dict)
    nodes: set[Node] = field(default_factory=set)

    def narrowed(
        self,
        start: Node,
        types: Iterable[RelationType] | None,
        kinds: Iterable[str] | None,
        since: datetime | None,
    ) -> set[Edge]:
        return {
            (source, type_, target)
            for (source, type_, target), at in self.edges.items()
            if (types is None or type_ in types)
            and all(
                kinds is None or node.kind in kinds or node == start for node in (source, target)
            )
            and (since is None or at >= since)
        }


def distances(edges: Iterable[Edge], start: Node) -> dict[Node, int]:
    far, frontier = {start: 0}, [start]
    while frontier:
        node = frontier.pop(0)
        if node.kind == "session" and node != start:
            continue  # no way leads through what only looked at both
        for source, _, target in edges:
            for here, there in ((source, target), (target, source)):
                if here == node and there not in far:
                    far[there] = far[node] + 1
                    frontier.append(there)
    return far


incidents = st.tuples(
    st.sets(st.sampled_from(ENTITIES)),
    st.sets(st.sampled_from(["T1110", "T1059"])),
    st.none() | st.integers(0, 4),  # which incident it was merged into
    DAYS,
)
ends = st.sampled_from([*ENTITIES, Node("session", "ses_1"), Node("session", "ses_2")])
told = st.tuples(ends, st.sampled_from(TOLD), ends, DAYS)


def make(connection: Connection, rows, relations) -> Plain:
    plain = Plain()
    for place, (entities, techniques, merged, day) in enumerate(rows):
        at = NOW + timedelta(days=day)
        number = add_incident(
            connection,
            *entities,
            techniques=techniques,
            external_id=f"case-{place}",
            merged_into=None if merged is None or merged == place else f"case-{merged}",
            occurred_at=at,
        )
        node = incident(number)
        plain.nodes |= {node, *entities}
        plain.edges |= {(node, RelationType.INVOLVES, entity): at for entity in entities}
        plain.edges |= {(node, RelationType.USES, technique(name)): at for name in techniques}
        if merged is not None and merged != place and merged < len(rows):
            target = incident(number - place + merged)
            plain.edges[node, RelationType.MERGED_INTO, target] = at
    for source, type_, target, day in relations:
        at = NOW + timedelta(days=day)
        record_relations(connection, {f"step:{day}": [ObservedRelation(source, type_, target, at)]})
        if source != target:
            edge = (source, type_, target)
            plain.edges[edge] = max(at, plain.edges.get(edge, at))
            plain.nodes |= {source, target}
    return plain


async def check(database, compare) -> None:
    """Compare many small graphs, each in a transaction that is undone."""

    def run(connection: Connection) -> None:
        @settings(max_examples=10)
        @given(st.lists(incidents, min_size=1, max_size=5), st.lists(told, max_size=5), st.data())
        def each(rows, relations, data) -> None:
            connection.execute(text("SAVEPOINT example"))
            try:
                compare(connection, make(connection, rows, relations), data)
            finally:
                connection.execute(text("ROLLBACK TO example"))

        each()

    await database.write(run)


async def test_a_neighborhood_holds_what_a_plain_search_reaches(database):
    def compare(connection, plain, data) -> None:
        start = data.draw(st.sampled_from(sorted(plain.nodes, key=str)))
        depth = data.draw(st.integers(1, 3))
        types = data.draw(st.none() | st.sets(st.sampled_from(RelationType), min_size=1))
        kinds = data.draw(st.none() | st.sets(st.sampled_from(["incident", "ip", "host"])))
        since = data.draw(st.none() | DAYS.map(lambda day: NOW + timedelta(days=day)))
        edges = plain.narrowed(start, types, kinds, since)
        near = {node: far for node, far in distances(edges, start).items() if far <= depth}
        view = {"types": types, "kinds": kinds, "since": since}
        found = find_neighborhood(connection, start, depth=depth, **view, **ROOMY)
        assert set(found.nodes) == set(near)
        assert [near[node] for node in found.nodes] == sorted(near.values())
        told = {(edge.source, edge.type, edge.target): edge for edge in found.edges}
        assert set(told) == {(a, b, c) for a, b, c in edges if a in near and c in near}
        assert {name: edge.last_seen for name, edge in told.items()} == {
            name: plain.edges[name] for name in told
        }
        assert found.complete

    await check(database, compare)


async def test_a_path_is_as_short_as_a_plain_search_finds(database):
    def compare(connection, plain, data) -> None:
        nodes = sorted(plain.nodes, key=str)
        start, end = data.draw(st.sampled_from(nodes)), data.draw(st.sampled_from(nodes))
        longest = data.draw(st.integers(1, 6))
        far = distances(plain.edges, start).get(end, 99)
        path = find_path(connection, start, end, longest=longest)
        assert len(path.nodes) == (far + 1 if far <= longest else 0)
        if path.nodes:
            assert (path.nodes[0], path.nodes[-1]) == (start, end)
        joined = {frozenset((edge.source, edge.target)) for edge in path.edges}
        assert joined == {frozenset(pair) for pair in zip(path.nodes, path.nodes[1:], strict=False)}
        assert path.complete

    await check(database, compare)
