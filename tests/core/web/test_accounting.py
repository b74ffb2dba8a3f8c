"""Accounting over HTTP."""

from __future__ import annotations

from datetime import timedelta

import pytest

from api_server import problem
from incident_rows import add_incidents
from tocsin.credentials import Scope
from tocsin.web.schemas.accounting import Proof
from tocsin.web.schemas.incident_trace import Trace

TRACE = "/api/admin/trace"
PROOF = "/api/admin/proof"
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
async def incident(api, clock) -> int:
    [number] = await api.services.database.write(add_incidents, now=clock.now())
    return number


async def test_a_trace_has_all_its_members(admin, incident):
    found = await admin.read(f"{TRACE}/{incident}")
    Trace.model_validate(found)
    assert found["incident"]["number"] == incident
    assert found["coverage"]["provider"] == "sensors"
    assert found["events"] == []


@pytest.mark.parametrize("number", ["2", "0", "-1", "x", "1" * 19])
async def test_there_is_no_trace_of_what_is_no_incident(admin, incident, number):
    await problem(await admin.send("GET", f"{TRACE}/{number}"), 404)


async def test_a_proof_tells_what_nothing_explains(admin, incident):
    proof = await admin.read(PROOF)
    Proof.model_validate(proof)
    assert proof["since"] == "2026-11-20T12:00:00.000Z"
    assert proof["until"] == "2026-11-21T12:00:00.000Z"
    assert proof["incidents"]["alerted"] == 1
    assert [item["kind"] for item in proof["unaccounted"]] == ["no-event"]


async def test_a_proof_is_of_the_period_that_was_asked_for(admin, incident, clock):
    clock.advance(minutes=50)
    recent = await admin.read(PROOF, timespan="PT30M")
    assert recent["incidents"]["alerted"] == 0
    before = await admin.read(PROOF, timespan="PT30M", until="2026-11-21T14:20:00+02:00")
    assert before["since"] == "2026-11-21T11:50:00.000Z"
    assert before["incidents"]["alerted"] == 1


@on_sqlite
async def test_a_period_ends_now_at_the_latest(admin, clock):
    until = (clock.now() + timedelta(days=1)).isoformat()
    assert (await admin.read(PROOF, until=until))["until"] == "2026-11-21T12:00:00.000Z"


WRONG = [
    "timespan=P32D",
    "timespan=P1M",
    "timespan=24h",
    "timespan=",
    "until=yesterday",
    "until=2026-11-21T12:00:00",
    "until=1795240981",
    "until=%00",
    "since=P1D",
]


@on_sqlite
@pytest.mark.parametrize("query", WRONG)
async def test_a_wrong_parameter_is_named(admin, query):
    [mistake] = (await problem(await admin.send("GET", f"{PROOF}?{query}"), 422))["errors"]
    assert mistake["path"] == query.partition("=")[0]


@on_sqlite
@pytest.mark.parametrize("path", [PROOF, f"{TRACE}/1"])
async def test_only_admins_account(api, path):
    await problem(await api.client.get(path), 401)
    for headers in (
        {"X-API-Key": await api.key(*Scope)},
        {"Authorization": f"Bearer {await api.access_token(*Scope)}"},
    ):
        await problem(await api.client.get(path, headers=headers), 403)
