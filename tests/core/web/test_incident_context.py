"""The context of an incident over HTTP: its alerts, its entities, and related incidents."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Connection, insert

from api_callers import Caller
from api_server import problem
from incident_rows import NOW, add_incidents
from tocsin.incidents import Author, LabelKind, TriageUpdate, lock_incident, update_triage
from tocsin.model import DispositionSource
from tocsin.store.tables import incident_alerts
from tocsin.web.schemas.incident_context import IncidentContext

PATH = "/api/v1/incidents/{}/context"
RARE, COMMON, RESOLVER = ("ip", "198.51.100.7"), ("user", "ana"), ("ip", "8.8.8.8")


@pytest.fixture
async def context(api):
    analyst = Caller(api, await api.analyst())

    async def read(number: int) -> dict:
        found = await analyst.read(PATH.format(number))
        IncidentContext.model_validate(found)
        return found

    return read


async def test_entities_are_told_with_their_roles_and_sightings(api, context):
    write = api.services.database.write
    await write(add_incidents, now=NOW - timedelta(days=3), entities=[RARE])
    await write(add_incidents, entities=[(*RARE, "source"), (*COMMON, "both"), ("ip", "10.0.0.1")])
    found = await context(2)
    assert found["entities_total"] == 3
    of = {each["value"]: each for each in found["entities"]}
    assert [each["role"] for each in of.values()] == [None, "source", "both"]
    assert of["198.51.100.7"]["incident_count"] == 2
    assert of["198.51.100.7"]["first_seen"] == "2026-11-18T12:00:00.000Z"
    assert (of["10.0.0.1"]["is_internal"], of["198.51.100.7"]["is_internal"]) == (True, False)


async def test_alerts_are_listed_from_the_earliest_to_the_latest(api, context):
    await api.services.database.write(add_incidents, alerts=2)
    await api.services.database.write(add_alerts, 1)
    found = await context(1)
    assert [each["external_id"] for each in found["alerts"]] == ["a0", "a1"]
    assert found["alerts_total"] == 2


def add_alerts(connection: Connection, number: int) -> None:
    for place in range(2):
        row = {"incident_number": number, "external_id": f"a{place}", "title": "Odd sign-in"}
        row |= {"severity": "High", "occurred_at": NOW + timedelta(minutes=place)}
        connection.execute(insert(incident_alerts).values(row))


async def test_related_incidents_come_with_reasons_the_rarest_entities_first(api, context):
    write = api.services.database.write
    await write(add_incidents, title="merged", external_id="part", merged_into="whole")
    await write(add_incidents, title="linked")
    await write(add_incidents, title="rare", entities=[RARE, RESOLVER])
    await write(add_incidents, 3, title="common", entities=[COMMON])
    await write(add_incidents, title="resolver", entities=[RESOLVER])
    [own] = await write(add_incidents, external_id="whole", entities=[RARE, COMMON, RESOLVER])
    await write(link, own, 2)
    related = (await context(own))["related"]
    assert [(each["title"], each["number"]) for each in related] == [
        ("linked", 2),
        ("merged", 1),
        ("rare", 3),
        ("common", 6),
        ("common", 5),
        ("common", 4),
    ]
    assert [(each["is_linked"], each["is_merged"]) for each in related[:3]] == [
        (True, False),
        (False, True),
        (False, False),
    ]
    assert related[2]["shared_entities"] == [{"kind": "ip", "value": "198.51.100.7"}]
    assert (await context(1))["related"][0]["is_merged"]


def link(connection: Connection, number: int, other: int) -> None:
    author = Author("ana", "admin:ana", DispositionSource.PERSON)
    lock_incident(connection, number)
    change = TriageUpdate(added={LabelKind.LINK: [str(other)]})
    update_triage(connection, number, change, author, NOW, public_url="")


async def test_an_unknown_incident_has_no_context(api):
    headers = await api.reader()
    for number in ("1", "0", "x"):
        await problem(await api.client.get(PATH.format(number), headers=headers), 404)
