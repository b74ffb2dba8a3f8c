"""History of incidents, and sightings of entities."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import insert

from incident_rows import NOW, add_incidents
from tocsin.hookspecs import Knowledge
from tocsin.knowledge.history import (
    find_incidents,
    find_sightings,
    list_incidents_within,
    load_incidents,
)
from tocsin.knowledge.history.incidents import MAX_ALERTS, MAX_SCANNED
from tocsin.knowledge.stored_knowledge import StoredKnowledge
from tocsin.model import (
    Entity,
    EntityKind,
    IncidentStatus,
    Marking,
    Neighborhood,
    Node,
    Pap,
    Severity,
    Sighting,
    Tlp,
    Window,
)
from tocsin.observables import Environment, EnvironmentSettings
from tocsin.store.tables import entities, incident_alerts

IP, HOST = Entity(EntityKind.IP, "192.0.2.1"), Entity(EntityKind.HOST, "WS-1")
HASH = Entity(EntityKind.FILE_HASH, "ab" * 32)
DAY = timedelta(days=1)
ENVIRONMENT = Environment(EnvironmentSettings(well_known=("192.0.2.1",)))


@pytest.fixture
def add(database):
    async def add(*about: Entity, count: int = 1, **values) -> list[int]:
        pairs = [(entity.kind, entity.value) for entity in about]
        return await database.write(add_incidents, count, entities=pairs, **values)

    return add


def numbers(records) -> list[int]:
    return [record.number for record in records]


async def test_incidents_come_in_the_order_asked_without_those_that_are_not(database, add):
    await add(IP, HOST, count=3)
    found = await database.read(load_incidents, [3, 99, 1, 3, 2**70, -1], {})
    assert numbers(found) == [3, 1]
    assert found[0].entities == (HOST, IP)
    assert found[0].severity is Severity.HIGH
    assert found[0].status is IncidentStatus.NEW
    assert found[0].techniques == ("T1059.001",)
    assert await database.read(load_incidents, [], {}) == []


async def test_an_incident_is_marked_as_its_provider_is(database, add):
    await add()
    await add(provider="mail")
    red = Marking(Tlp.RED)
    found = await database.read(load_incidents, [1, 2], {"sensors": Marking(), "mail": red})
    assert [record.marking for record in found] == [Marking(), red]


async def test_what_came_from_a_provider_that_is_gone_is_red(database, add):
    await add()
    [found] = await database.read(load_incidents, [1], {})
    assert found.marking == Marking(Tlp.RED, Pap.RED)


async def test_the_latest_alerts_are_shown_the_earliest_first(database, add):
    [number] = await add()
    rows = [
        {
            "incident_number": number,
            "external_id": f"alert-{at:02}",
            "title": "Seen",
            "severity": "Low",
            "occurred_at": NOW + timedelta(minutes=at),
        }
        for at in range(MAX_ALERTS + 5)
    ]
    await database.write(lambda connection: connection.execute(insert(incident_alerts), rows))
    [found] = await database.read(load_incidents, [number], {})
    assert [alert.external_id for alert in found.alerts] == [
        f"alert-{at:02}" for at in range(5, MAX_ALERTS + 5)
    ]


async def test_incidents_about_entities_come_newest_first_and_once(database, add):
    await add(IP, occurred_at=NOW - DAY)
    await add(IP, HOST, occurred_at=NOW)
    await add(HOST, occurred_at=NOW - 2 * DAY)
    await add(occurred_at=NOW)
    assert numbers(await database.read(find_incidents, [IP, HOST], {})) == [2, 1, 3]
    assert numbers(await database.read(find_incidents, [IP, HOST], {}, limit=1)) == [2]
    assert numbers(await database.read(find_incidents, [], {})) == []


async def test_incidents_about_an_entity_are_narrowed_to_a_window_and_a_provider(database, add):
    await add(IP, occurred_at=NOW - DAY)
    await add(IP, occurred_at=NOW - DAY, provider="mail")
    await add(IP, occurred_at=NOW)
    window = Window(NOW - DAY, NOW)
    assert numbers(await database.read(find_incidents, [IP], {}, window=window)) == [2, 1]
    found = await database.read(find_incidents, [IP], {}, window=window, provider="mail")
    assert numbers(found) == [2]
    empty = Window(NOW + DAY, NOW + 2 * DAY)
    assert await database.read(find_incidents, [IP], {}, window=empty) == []


async def test_a_window_of_long_ago_is_found_for_an_entity_in_very_many_incidents(database, add):
    await add(IP, occurred_at=NOW - 9 * DAY)
    await add(IP, count=MAX_SCANNED + 10, occurred_at=NOW)
    window = Window(NOW - 10 * DAY, NOW - 8 * DAY)
    assert numbers(await database.read(find_incidents, [IP], {}, window=window)) == [1]


async def test_incidents_of_a_window_come_newest_first(database, add):
    await add(occurred_at=NOW - DAY)
    await add(occurred_at=NOW - 2 * DAY, severity="Low")
    await add(occurred_at=NOW - timedelta(hours=1), provider="mail")
    await add(occurred_at=NOW)
    window = Window(NOW - 2 * DAY, NOW)
    assert numbers(await database.read(list_incidents_within, window, {})) == [3, 1, 2]
    assert numbers(await database.read(list_incidents_within, window, {}, provider="mail")) == [3]
    severe = {"min_severity": Severity.MEDIUM, "limit": 2}
    assert numbers(await database.read(list_incidents_within, window, {}, **severe)) == [3, 1]


async def test_a_sighting_says_how_often_when_and_where(database, add):
    await add(IP, HASH, count=12)
    row = {
        "kind": "ip",
        "value": IP.value,
        "incident_count": 12,
        "first_seen": NOW - DAY,
        "last_seen": NOW,
        "last_incident": 12,
    }
    await database.write(lambda connection: connection.execute(insert(entities), [row]))
    never = Entity(EntityKind.IP, "10.0.0.1")
    latest = tuple(range(12, 2, -1))
    assert await database.read(find_sightings, [HASH, never, IP], ENVIRONMENT) == [
        Sighting(entity=HASH, incident_count=12, first_seen=NOW, last_seen=NOW, recent=latest),
        Sighting(entity=never, incident_count=0, internal=True),
        Sighting(
            entity=IP,
            incident_count=12,
            first_seen=NOW - DAY,
            last_seen=NOW,
            recent=latest,
            well_known=True,
        ),
    ]


async def test_enrichers_are_handed_what_is_known(database, add):
    await add(IP)
    knowledge: Knowledge = StoredKnowledge(database, ENVIRONMENT, {})
    [sighting] = await knowledge.sightings([IP])
    assert sighting.incident_count == 1
    assert numbers(await knowledge.incidents_about([IP])) == [1]
    assert len((await knowledge.neighbors(IP)).nodes) == 2
    unknown = Neighborhood(nodes=(Node.of(HOST),), edges=(), complete=True)
    assert await knowledge.neighbors(HOST) == unknown
