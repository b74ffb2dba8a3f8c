"""Reading incidents: what comes back, that nothing is missed, and by which index."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Connection, event

from graph_rows import add_incident
from incident_rows import NOW, add_incidents, change_incident
from tocsin.credentials import load_api_key
from tocsin.incidents import IncidentFilter, count_by_hour, list_pages
from tocsin.model import IncidentStatus, Severity

URL = "https://tocsin.example"


def numbers(page: list_pages.IncidentPage) -> list[int]:
    return [incident["number"] for incident in page.incidents]


async def list_incidents(database, **query):
    query = {"public_url": URL, "limit": 50, **query}
    return await database.read(list_pages.list_incidents, **query)


async def test_an_incident_is_shown_with_its_entities_and_alerts(database):
    entities = [("user", "eve"), ("ip", "192.0.2.1")]
    await database.write(add_incidents, entities=entities, alerts=3)
    found = await database.read(list_pages.find_incident, 1, public_url=URL)
    assert found.content == {
        "number": 1,
        "provider": "sensors",
        "external_id": "external-1",
        "external_number": "1001",
        "title": "Incident 1",
        "description": "What was seen.",
        "severity": "High",
        "raw_severity": "3",
        "severity_assumed": False,
        "status": "New",
        "raw_status": "open",
        "merged_into": None,
        "occurred_at": "2026-11-21T12:00:00.000Z",
        "created_at": "2026-11-21T12:00:00.000Z",
        "updated_at": "2026-11-21T12:00:00.000Z",
        "url": "https://tocsin.example/incidents/1",
        "source_url": "https://siem.example/1",
        "alert_count": 3,
        "entities": [
            {"kind": "ip", "value": "192.0.2.1", "role": None},
            {"kind": "user", "value": "eve", "role": None},
        ],
        "techniques": ["T1059.001"],
        "tactics": [],
        "triage": None,
    }


async def test_an_unknown_number_is_none(database):
    assert await database.read(list_pages.find_incident, 1, public_url=URL) is None


async def test_the_most_recently_changed_comes_first(database):
    await database.write(add_incidents, 3)
    await database.write(change_incident, 1, now=NOW)
    assert numbers(await list_incidents(database)) == [1, 3, 2]


async def test_a_list_has_what_a_single_read_has(database):
    await database.write(add_incidents, 3, entities=[("ip", "192.0.2.1")], alerts=2)
    listed = (await list_incidents(database)).incidents
    single = [await database.read(list_pages.find_incident, n, public_url=URL) for n in (3, 2, 1)]
    assert listed == [found.content for found in single]


async def test_pages_follow_each_other_without_gap_or_overlap(database):
    await database.write(add_incidents, 7)
    seen, before = [], None
    while True:
        page = await list_incidents(database, limit=3, before=before)
        seen += numbers(page)
        if page.next is None:
            break
        before = page.next
    assert seen == [7, 6, 5, 4, 3, 2, 1]


async def test_the_filters_hold_together(database):
    for severity in Severity:
        for status in IncidentStatus:
            await database.write(add_incidents, severity=severity, status=status)
    page = await list_incidents(database, severity=Severity.LOW, status=IncidentStatus.ACTIVE)
    assert [(i["severity"], i["status"]) for i in page.incidents] == [("Low", "Active")]
    assert page.total == 1
    assert (await list_incidents(database, severity=Severity.LOW)).total == 3
    assert (await list_incidents(database, status=IncidentStatus.ACTIVE)).total == 5


async def test_a_timespan_leaves_out_what_has_not_changed_within_it(database):
    await database.write(add_incidents, 2, now=NOW - timedelta(hours=2))
    await database.write(change_incident, 1, now=NOW)
    page = await list_incidents(database, since=NOW - timedelta(hours=1))
    assert (numbers(page), page.total) == ([1], 1)
    assert numbers(await list_incidents(database, since=NOW + timedelta(seconds=1))) == []


async def test_a_timespan_misses_nothing_where_clocks_differ(database):
    await database.write(add_incidents, now=NOW + timedelta(seconds=5))
    await database.write(add_incidents, now=NOW)
    assert numbers(await list_incidents(database, since=NOW)) == [2, 1]


async def test_changes_come_in_their_order_and_each_once(database):
    await database.write(add_incidents, 5)
    await database.write(change_incident, 2, now=NOW)
    first = await list_incidents(database, after=0, limit=3)
    second = await list_incidents(database, after=first.resume, limit=3)
    assert (numbers(first), numbers(second)) == ([1, 3, 4], [5, 2])
    assert first.next == first.resume
    assert second.next is None


async def test_with_nothing_new_one_stays_where_one_was(database):
    await database.write(add_incidents, 2)
    page = await list_incidents(database, after=2)
    assert (page.incidents, page.resume) == ([], 2)


async def test_going_on_from_a_list_misses_nothing(database):
    await database.write(add_incidents, 4)
    page = await list_incidents(database, limit=2)
    await database.write(change_incident, 1, now=NOW)
    assert numbers(await list_incidents(database, after=page.resume)) == [1]


async def test_a_start_within_a_timespan_never_falls_back_to_the_beginning(database):
    await database.write(add_incidents, 3, now=NOW - timedelta(days=9))
    page = await list_incidents(database, after=0, since=NOW - timedelta(days=1))
    assert (page.incidents, page.resume) == ([], 3)


async def test_writes_between_the_statements_of_a_list_lose_nothing(database):
    """Whatever is committed while a list is read is in it, or comes after its resume cursor."""
    import asyncio

    async def write() -> None:  # no more than a first page holds, however late it is read
        for _ in range(25):
            await database.write(add_incidents, 2)

    async def follow() -> set[int]:
        page = await list_incidents(database)
        seen = set(numbers(page))
        after = page.resume
        is_last = False
        while not is_last or page.incidents:
            is_last = writing.done()  # before the read, which may miss what is written meanwhile
            page = await list_incidents(database, after=after, limit=7)
            seen |= set(numbers(page))
            after = page.resume
        return seen

    writing = asyncio.ensure_future(write())
    seen = await follow()
    await writing
    assert seen == set(range(1, 51))


async def test_totals_are_exact_up_to_ten_thousand(database):
    await database.write(add_incidents, list_pages.MAX_COUNTED)
    page = await list_incidents(database, limit=1)
    assert (page.total, page.exact) == (10_000, True)
    await database.write(add_incidents, 1)
    page = await list_incidents(database, limit=1)
    assert (page.total, page.exact) == (10_000, False)


QUERIES = {
    "list": {},
    "list, next page": {"before": 9},
    "severity": {"severity": Severity.HIGH},
    "status": {"status": IncidentStatus.NEW},
    "severity and status": {"severity": Severity.HIGH, "status": IncidentStatus.NEW},
    "timespan": {"since": NOW},
    "timespan and severity": {"since": NOW, "severity": Severity.HIGH},
    "changed_after": {"after": 1},
    "changed_after and severity": {"after": 1, "severity": Severity.HIGH},
    "provider": {"content": IncidentFilter(provider="siem")},
}


def plan(connection: Connection, operation, *args, **kwargs) -> list[str]:
    """Return the plan of every statement that the operation executes."""
    statements = []

    def note(_connection, _cursor, statement, parameters, _context, _many):
        statements.append((statement, parameters))

    event.listen(connection, "before_cursor_execute", note)
    try:
        operation(connection, *args, **kwargs)
    finally:
        event.remove(connection, "before_cursor_execute", note)
    return [
        row[3]
        for statement, parameters in statements
        for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
    ]


def assert_indexed(steps: list[str]) -> None:
    assert any(step.startswith("SEARCH") for step in steps)
    for step in steps:
        # The subquery that bounds a count is scanned, and holds 10,001 rows at most; so is the list
        # of the page's numbers, by which the triage is looked up
        assert not step.startswith("SCAN") or step.startswith(("SCAN anon_1", "SCAN json_each")), (
            steps
        )
        assert "TEMP B-TREE" not in step, steps


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", QUERIES)
async def test_a_list_walks_an_index_in_its_order(database, name):
    await database.write(add_incidents, 3, entities=[("ip", "192.0.2.1")], alerts=1)
    query = {"public_url": URL, "limit": 50, **QUERIES[name]}
    assert_indexed(await database.read(plan, list_pages.list_incidents, **query))


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_timespan_is_looked_up_by_time(database):
    steps = await database.read(
        plan, list_pages.list_incidents, public_url=URL, limit=50, since=NOW, severity=Severity.HIGH
    )
    assert any("ix_incidents_updated_at (updated_at>?)" in step for step in steps)
    assert any("ix_incidents_severity_change (severity=? AND" in step for step in steps)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_incidents_of_a_provider_are_counted_in_an_index_alone(database):
    content = IncidentFilter(provider="siem")
    steps = await database.read(
        plan, list_pages.list_incidents, public_url=URL, limit=50, content=content
    )
    assert any("COVERING INDEX ix_incidents_provider_change" in step for step in steps)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_single_reads_go_by_their_key(database):
    await database.write(add_incidents)
    assert_indexed(await database.read(plan, list_pages.find_incident, 1, public_url=URL))
    assert_indexed(await database.read(plan, load_api_key, "k" * 16))


async def test_incidents_are_filtered_by_what_they_contain(database):
    entities = [("ip", "192.0.2.1"), ("host", "ws-1")]
    await database.write(add_incidents, title="100% of a disk", entities=entities)
    await database.write(add_incident, title="Brute force", techniques=["T1110.003"])
    await database.write(add_incidents, now=NOW + timedelta(days=1), occurred_at=NOW)
    await database.write(add_incidents, occurred_at=NOW + timedelta(hours=1))
    for wanted, expected in (
        ({"title": "0% OF"}, [1]),
        ({"title": "_"}, []),
        ({"entity": "WS-1."}, [1]),
        ({"entity": "192.0.2"}, []),
        ({"technique": "T1110"}, [2]),
        ({"technique": "T111"}, []),
        ({"technique": "T1110.003", "title": "force", "provider": "sensors"}, [2]),
        ({"occurred_since": NOW + timedelta(hours=1)}, [4]),
        ({"occurred_until": NOW + timedelta(hours=1)}, [3, 2, 1]),
    ):
        page = await list_incidents(database, content=IncidentFilter(**wanted))
        assert (numbers(page), page.total) == (expected, len(expected)), wanted


async def test_incidents_are_counted_by_hour_and_severity(database):
    now = NOW + timedelta(minutes=59)
    for minutes, severity in ((0, "Low"), (59, "Low"), (60, "High"), (-1, "High"), (-121, "Low")):
        at = NOW + timedelta(minutes=minutes)
        await database.write(add_incidents, occurred_at=at, severity=severity)
    found = await database.read(count_by_hour, now, 3)
    assert [(each.start - NOW, each.counts) for each in found] == [
        (timedelta(hours=-2), {}),
        (timedelta(hours=-1), {"High": 1}),
        (timedelta(), {"Low": 2}),
    ]
