"""Ranking of detections by the dispositions of their incidents."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, insert

from incident_rows import NOW, add_incidents
from tocsin.incidents import Author, TriageUpdate, lock_incident, rank_detections, update_triage
from tocsin.model import DispositionSource, IncidentDisposition
from tocsin.store.tables import incident_alerts

FALSE, TRUE = IncidentDisposition.FALSE_POSITIVE, IncidentDisposition.TRUE_POSITIVE
AUTHOR = Author("ana", "admin:ana", DispositionSource.PERSON)


def add_classified(
    connection: Connection,
    disposition: IncidentDisposition,
    *alerts: str | tuple[str, str],
    at: datetime = NOW,
    title: str = "Case",
    provider: str = "sensors",
) -> int:
    [number] = add_incidents(connection, alerts=len(alerts), title=title, provider=provider)
    for place, alert in enumerate(alerts):
        title, rule = alert if isinstance(alert, tuple) else (alert, None)
        row = {"incident_number": number, "external_id": f"a{place}", "title": title, "rule": rule}
        row |= {"severity": "High", "occurred_at": NOW}
        connection.execute(insert(incident_alerts).values(row))
    lock_incident(connection, number)
    update = TriageUpdate(disposition=disposition)
    update_triage(connection, number, update, AUTHOR, at, public_url="")
    return number


async def test_detections_with_the_most_false_positives_come_first(database):
    write = database.write
    await write(add_classified, TRUE, "Scan")
    await write(add_classified, FALSE, "Scan", "Scan", "Odd sign-in")
    latest = await write(add_classified, FALSE, "Odd sign-in")
    await write(add_classified, FALSE, title="No alerts", provider="edge")
    await write(add_incidents, title="Never classified")
    found = await database.read(rank_detections, NOW, None, 10)
    assert [(each.provider, each.title, each.dispositions) for each in found] == [
        ("sensors", "Odd sign-in", {FALSE: 2}),
        ("sensors", "Scan", {TRUE: 1, FALSE: 1}),
        ("edge", "No alerts", {FALSE: 1}),
    ]
    assert [each.false_positive_ratio for each in found] == [1, 0.5, 1]
    assert found[0].latest_incident == latest


async def test_alerts_of_a_rule_count_for_it_whatever_their_titles(database):
    write = database.write
    await write(add_classified, FALSE, ("Scan of web-1", "Port scan"), ("Scan of a", "Port scan"))
    await write(add_classified, TRUE, ("Scan of web-2", "Port scan"), ("Odd", "Odd sign-in"))
    await write(add_classified, FALSE, ("Scan of web-3", "Port scan"), provider="edge")
    found = await database.read(rank_detections, NOW, None, 10)
    assert [(each.provider, each.rule, each.title, each.dispositions) for each in found] == [
        ("sensors", "Port scan", "Scan of web-2", {TRUE: 1, FALSE: 1}),
        ("edge", "Port scan", "Scan of web-3", {FALSE: 1}),
        ("sensors", "Odd sign-in", "Odd", {TRUE: 1}),
    ]


async def test_what_has_no_rule_counts_for_the_rule_of_its_title_if_there_is_one(database):
    """Such as the alerts that were stored before their rules were."""
    write = database.write
    await write(add_classified, FALSE, "Port scan", ("Scan of web-1", "Port scan"))
    await write(add_classified, FALSE, "Port scan")
    await write(add_classified, TRUE, title="Port scan")
    await write(add_classified, TRUE, "Scan of web-1")
    found = await database.read(rank_detections, NOW, None, 10)
    assert [(each.rule, each.title, each.dispositions) for each in found] == [
        ("Port scan", "Port scan", {TRUE: 1, FALSE: 2}),
        (None, "Scan of web-1", {TRUE: 1}),
    ]


async def test_the_title_of_a_rule_is_that_of_its_latest_alert(database):
    alerts = (("First", "Rule"), ("Second", "Rule"), ("Other", "Other rule"))
    await database.write(add_classified, FALSE, *alerts)
    found = await database.read(rank_detections, NOW, None, 10)
    assert [each.title for each in found] == ["Other", "Second"]


async def test_the_period_the_provider_and_the_limit_choose_detections(database):
    await database.write(add_classified, FALSE, "Old", at=NOW - timedelta(days=1))
    await database.write(add_classified, FALSE, "New", "Newer")
    await database.write(add_classified, FALSE, "Other", provider="edge")
    for provider, limit, expected in (
        (None, 10, ["Other", "New", "Newer"]),
        ("sensors", 10, ["New", "Newer"]),
        ("sensors", 1, ["New"]),
        ("unknown", 10, []),
    ):
        found = await database.read(rank_detections, NOW, provider, limit)
        assert [each.title for each in found] == expected
