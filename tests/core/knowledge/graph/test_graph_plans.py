"""Query plans of the graph: no statement scans a table."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from sqlalchemy import event

from graph_rows import HOST, IP, add_incident
from incident_rows import NOW
from tocsin.knowledge.graph import count_graph, find_latest_incidents, find_neighborhood, find_path
from tocsin.knowledge.history import find_incidents, find_sightings, list_incidents_within
from tocsin.knowledge.markings import find_markings
from tocsin.model import Entity, EntityKind, Node, RelationType, Window
from tocsin.observables import Environment

TABLES = (
    "incidents|incident_entities|incident_techniques|incident_alerts|relations|relation_sources|"
    "entities|entity_providers|sessions"
)
ABOUT = [Entity(EntityKind.IP, "192.0.2.1")]
WINDOW = Window(NOW - timedelta(days=1), NOW)
NARROWED = {
    "types": [RelationType.INVOLVES, RelationType.CONNECTED_TO],
    "kinds": ["incident", "ip"],
    "since": WINDOW.start,
    "until": WINDOW.end,
}
READS = {
    "neighbourhood": (find_neighborhood, [IP], {"depth": 2}),
    "narrowed neighborhood": (find_neighborhood, [IP], {"depth": 3, **NARROWED}),
    "path": (find_path, [IP, HOST], {}),
    "latest": (find_latest_incidents, [], {"since": WINDOW.start, "until": WINDOW.end}),
    "sightings": (find_sightings, [ABOUT, Environment()], {}),
    "incidents about": (find_incidents, [ABOUT, {}], {"window": WINDOW, "provider": "mail"}),
    "incidents within": (list_incidents_within, [WINDOW, {}], {}),
    "markings": (find_markings, [ABOUT, {}], {}),
}


@pytest.fixture
async def filled(graph):
    await graph.add(IP, HOST, techniques=["T1110"], alerts=1, external_id="kept")
    await graph.add(IP, merged_into="kept", count=1)
    await graph.tell(IP, RelationType.CONNECTED_TO, HOST)
    return graph


async def executed(database, operation, *arguments, **options) -> list[tuple[str, object]]:
    """Do it, and return each statement that this took."""

    def run(connection):
        noted = []

        def note(_connection, _cursor, statement, parameters, *_rest) -> None:
            noted.append((statement, parameters))

        event.listen(connection, "before_cursor_execute", note)
        operation(connection, *arguments, **options)
        event.remove(connection, "before_cursor_execute", note)
        return noted

    return await database.read(run)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", READS)
async def test_every_table_is_entered_by_an_index_in_sqlite(filled, name):
    operation, arguments, options = READS[name]
    for statement, parameters in await executed(filled.database, operation, *arguments, **options):
        steps = await filled.read(plan, statement, parameters)
        # an alias is called like its table, with a number
        scanned = [step for step in steps if re.match(rf"SCAN ({TABLES})(_\d+)?( |$)", step)]
        assert not scanned, (statement, steps)
        assert not [step for step in steps if "AUTOMATIC" in step], (statement, steps)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_what_was_merged_into_an_incident_is_found_by_an_index(filled):
    steps = []
    for statement, parameters in await executed(filled.database, find_neighborhood, IP):
        steps += await filled.read(plan, statement, parameters)
    found = [step for step in steps if "ix_incidents_merged_into" in step]
    assert found
    assert all("(provider=? AND merged_into=?" in step for step in found), found


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_what_marks_an_entity_beyond_amber_is_found_by_an_index_of_that_alone(filled):
    steps = []
    for statement, parameters in await executed(filled.database, find_markings, ABOUT, {}):
        steps += await filled.read(plan, statement, parameters)
    for end in ("source", "target"):
        assert [step for step in steps if f"COVERING INDEX ix_relations_strict_{end}" in step], (
            steps
        )


def plan(connection, statement, parameters) -> list[str]:
    rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
    return [row[3] for row in rows]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_statistics_walk_no_further_than_they_count(filled):
    for statement, parameters in await executed(filled.database, count_graph):
        steps = await filled.read(plan, statement, parameters)
        # what is walked is walked as far as it is counted, and not for rows that are rare in it
        assert not [step for step in steps if re.fullmatch(r"SCAN incidents(_\d+)?", step)], steps
        counted = re.findall(r"FROM \(SELECT .*?LIMIT", statement, re.DOTALL)
        assert len(counted) == statement.count("count(*)")


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("name", READS)
async def test_every_table_is_entered_by_an_index_in_postgresql(filled, name):
    operation, arguments, options = READS[name]

    def explained(connection) -> list[str]:
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        return explain(connection, operation, *arguments, **options)

    steps = await filled.database.write(explained)
    assert steps
    assert not [step for step in steps if re.search(rf"Seq Scan on ({TABLES})\b", step)], steps


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize(
    "name",
    [
        "neighbourhood",
        "incidents about",
        *(pytest.param(name, marks=pytest.mark.full) for name in ("path", "sightings")),
    ],
)
async def test_postgresql_does_not_collect_all_incidents_of_a_hub(graph, name):
    rare = [Node("ip", f"198.51.100.{number}") for number in range(200)]
    await graph.database.write(lambda connection: [add_incident(connection, each) for each in rare])
    await graph.add(IP, HOST, count=1000)
    await graph.database.write(lambda connection: connection.exec_driver_sql("ANALYZE"))
    operation, arguments, options = READS[name]
    steps = await graph.read(explain, operation, *arguments, **options)
    assert not [step for step in steps if "Bitmap" in step or "Seq Scan on inc" in step], steps
    assert await graph.read(setting) == "on"


def setting(connection) -> str:
    return connection.exec_driver_sql("SHOW enable_bitmapscan").scalar_one()


def explain(connection, operation, *arguments, **options) -> list[str]:
    """Do it, and return PostgreSQL's plan of each statement that this took."""
    steps = []

    def note(_connection, _cursor, statement, parameters, *_rest) -> None:
        if statement.startswith(("SELECT", "WITH")):
            cursor = connection.connection.cursor()
            cursor.execute(f"EXPLAIN {statement}", parameters)
            steps.extend(row[0] for row in cursor.fetchall())
            cursor.close()

    event.listen(connection, "before_cursor_execute", note)
    operation(connection, *arguments, **options)
    event.remove(connection, "before_cursor_execute", note)
    return steps
