"""Alerts of an incident with their records: stored, listed over HTTP, and shown in the console."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import reduce
from math import nan
from types import MappingProxyType

import pytest

from api_callers import INCIDENTS, Caller
from api_server import problem
from console import Person
from incident_rows import NOW, add_incidents
from tocsin.incidents.coverage.positions import StreamKey
from tocsin.incidents.storage.alerts import IncidentPolicy
from tocsin.incidents.storage.store import store_received
from tocsin.model import Alert, Incident, NetworkFlow, Received, Severity
from tocsin.web.schemas.alerts import AlertList

PATH = f"{INCIDENTS}/1/alerts"
FLOW = NetworkFlow(source="203.0.113.7", target="192.0.2.10", target_port=443, protocol="tcp")
RECORD = {"zebra": "<b>first</b>\0", "port": 443, "user": "CORP\\ana"}
DEEP = reduce(lambda inner, _: {"in": inner}, range(300), {})
DEEPEST = reduce(lambda inner, _: {"in": inner}, range(900), {})
ALERT = Alert(
    external_id="a/1",
    title="Odd sign-in",
    severity=Severity.HIGH,
    occurred_at=NOW,
    rule="Impossible travel",
    flow=FLOW,
    record=RECORD,
)


@pytest.fixture
def store(api):
    async def store(*alerts: Alert, **policy: bool) -> None:
        incident = Incident(
            external_id="i1", title="Case", severity=Severity.HIGH, occurred_at=NOW, alerts=alerts
        )
        await api.services.database.write(
            store_received,
            StreamKey("sensors", "alerts"),
            Received(incidents=(incident,), records=1),
            policy=IncidentPolicy("https://tocsin.example", **policy),
            now=NOW,
        )

    return store


async def test_an_alert_has_its_flow_and_the_record_as_it_came(api, store):
    await store(ALERT)
    analyst = Caller(api, await api.analyst())
    found = AlertList.model_validate(await analyst.read(PATH))
    [alert] = found.alerts
    assert alert.rule == "Impossible travel"
    assert list(alert.record.items()) == list(RECORD.items())
    assert alert.flow.model_dump() == {
        "source": "203.0.113.7",
        "source_port": None,
        "target": "192.0.2.10",
        "target_port": 443,
        "protocol": "tcp",
        "direction": None,
    }


@pytest.mark.parametrize(
    ("record", "stored"),
    [
        ({"text": "x" * 33_000}, None),
        ({"half": "\ud83d"}, {"half": "\N{REPLACEMENT CHARACTER}"}),
        ({"at": NOW.date()}, {"at": "2026-11-21"}),
        (None, None),
        ({"text": "\N{SNOWMAN}" * 11_000}, None),
        (DEEP, None),
        (DEEPEST, None),
        ({"half": "\ud83d", "ratio": nan}, None),
        (MappingProxyType({"port": 443}), {"port": 443}),
    ],
    ids=[
        "too-long",
        "surrogate",
        "not-json",
        "none",
        "too-many-bytes",
        "deep",
        "deepest",
        "number",
        "mapping",
    ],
)
async def test_a_record_that_cannot_be_stored_never_stops_an_incident(api, store, record, stored):
    await store(replace(ALERT, record=record))
    analyst = Caller(api, await api.analyst())
    [alert] = (await analyst.read(PATH))["alerts"]
    assert alert["record"] == stored


async def test_erased_values_are_replaced_in_records_however_deep_these_are(api, store, admin):
    await admin.ask("POST", "/api/admin/erasures", 200, json={"entity": "user:ana"})
    await store(ALERT, replace(ALERT, external_id="a2", record=DEEPEST))
    analyst = Caller(api, await api.analyst())
    deepest, alert = (await analyst.read(PATH))["alerts"]
    assert deepest["record"] is None
    assert alert["record"]["user"].startswith("CORP\\erased-")


@pytest.mark.parametrize(
    ("rule", "stored"), [(None, None), ("", None), ("a\0b", "a\N{REPLACEMENT CHARACTER}b")]
)
async def test_the_context_of_an_incident_shows_the_rule_as_text(api, store, rule, stored):
    await store(replace(ALERT, rule=rule))
    analyst = Caller(api, await api.analyst())
    [alert] = (await analyst.read(f"{INCIDENTS}/1/context"))["alerts"]
    assert alert["rule"] == stored


async def test_a_later_version_of_an_alert_changes_neither_its_title_nor_its_rule(api, store):
    await store(ALERT)
    await store(replace(ALERT, title="Renamed", rule="Renamed"))
    analyst = Caller(api, await api.analyst())
    [alert] = (await analyst.read(PATH))["alerts"]
    assert (alert["title"], alert["rule"]) == ("Odd sign-in", "Impossible travel")


async def test_records_are_not_stored_if_so_set(api, store):
    await store(ALERT, stores_records=False)
    analyst = Caller(api, await api.analyst())
    [alert] = (await analyst.read(PATH))["alerts"]
    assert (alert["record"], alert["flow"]["target_port"]) == (None, 443)


async def test_pages_list_every_alert_once_the_latest_first(api, store):
    same_time = [replace(ALERT, external_id=f"a{n}") for n in range(3)]
    earlier = replace(ALERT, external_id="b", occurred_at=NOW - timedelta(minutes=1))
    await store(earlier, *same_time)
    analyst = Caller(api, await api.analyst())
    page = await analyst.read(f"{PATH}?limit=2")
    names = [alert["external_id"] for alert in page["alerts"]]
    assert page["total"] == 4
    rest = await analyst.read(f"{PATH}?limit=2&cursor={page['next_cursor']}")
    assert names + [alert["external_id"] for alert in rest["alerts"]] == ["a2", "a1", "a0", "b"]
    assert rest["next_cursor"] is None


async def test_an_unknown_incident_has_no_alerts(api):
    headers = await api.reader()
    await problem(await api.client.get(PATH, headers=headers), 404)
    await problem(await api.client.get(f"{PATH}?cursor=x", headers=headers), 422)


async def test_the_console_shows_records_as_text(api, store):
    person = Person(api)
    await person.sign_in()
    await store(*(replace(ALERT, external_id=f"a{n}") for n in range(6)))
    page = await person.html("/incidents/1")
    assert "203.0.113.7" in page
    assert page.count("Record from the SIEM") == 5
    assert "&lt;b&gt;first" in page
    assert page.count("Rule: <bdi>Impossible travel</bdi>") == 5
    assert 'href="/incidents/1/alerts"' in page
    assert (await person.html("/incidents/1/alerts")).count("Record from the SIEM") == 6


async def test_an_incident_without_alerts_says_so(api):
    person = Person(api)
    await person.sign_in()
    await api.services.database.write(add_incidents)
    assert "The SIEM reports no individual alerts for this incident." in await person.html(
        "/incidents/1/alerts"
    )
