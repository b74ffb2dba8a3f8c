"""Requests that a replica answers, with the database as its own replica."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import text

from api_callers import GOOD_DESTINATION, INCIDENTS, KEYS, Admin, Caller
from api_server import open_api
from console import Person
from tocsin.clock import SystemClock
from tocsin.store import FallbackReason, ReadReplica, record_heartbeat
from tocsin.store.postgres import PostgresDatabase
from tocsin.web.endpoints import ENDPOINTS

LAG = "Tocsin-Replica-Lag"
SORTED = f"{INCIDENTS}?sort=severity"  # which one statement does not answer
pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture
def outcomes() -> list[FallbackReason | None]:
    return []


@pytest.fixture
async def api(database, migrated_url, clock, outcomes):
    """An API with a replica, which has shown the first beat."""
    replica = ReadReplica(
        PostgresDatabase(migrated_url, is_replica=True),
        database,
        SystemClock(),
        1,
        max_lag=timedelta(minutes=1),
        count=outcomes.append,
    )
    await database.write(record_heartbeat, 1, "soc-1:8080", (), clock.now(), roles=["api"])
    await replica.measure()
    async with open_api(database, clock, replica=replica) as api:
        yield api
    await replica.close()


async def test_a_list_comes_from_the_replica_and_says_so(api, outcomes, add):
    await add(2)
    response = await api.client.get(SORTED, headers=await api.reader())
    assert (response.status, float(response.headers[LAG]) < 60) == (200, True)
    assert len((await response.json())["incidents"]) == 2
    assert outcomes == [None]


async def test_single_records_and_the_usual_list_come_from_the_primary(api, outcomes, add):
    [number] = await add()
    reader = await api.reader()
    await api.client.get(SORTED, headers=reader)  # a key that was verified before is the usual one
    outcomes.clear()
    for path in (INCIDENTS, f"{INCIDENTS}/{number}", f"{INCIDENTS}/{number}/context"):
        response = await api.client.get(path, headers=reader)
        assert (response.status, LAG in response.headers) == (200, False)
    assert outcomes == []


async def test_credentials_never_come_from_the_replica(api, outcomes):
    await Admin(api, await api.admin()).ask("GET", KEYS)
    assert outcomes == []
    shown = {endpoint.path for endpoint in ENDPOINTS if endpoint.may_lag}
    assert not {path for path in shown if "api-" in path or "oauth" in path}


async def test_a_disabled_key_ends_at_once(api, outcomes):
    admin, headers = Admin(api, await api.admin()), await api.reader()
    [key] = (await admin.ask("GET", KEYS))["api_keys"]
    await admin.ask("DELETE", f"{KEYS}/{key['key_id']}")
    assert (await api.client.get(SORTED, headers=headers)).status == 401
    assert outcomes == []


async def test_what_a_caller_writes_has_to_be_on_the_replica(api, database, outcomes, add):
    [number] = await add()
    caller = Caller(api, await api.analyst())
    response = await caller.send("PATCH", f"{INCIDENTS}/{number}", json={"add_tags": ["x"]})
    assert response.status == 200, await response.text()
    [mark] = await database.read(
        lambda connection: connection.scalars(text("SELECT mark FROM write_marks")).all()
    )
    assert mark
    await caller.ask("GET", SORTED)
    assert outcomes == [None]


@pytest.mark.parametrize("path", ["/", "/search?q=x", "/graph", "/deliveries"])
async def test_a_page_of_the_console_says_that_a_replica_was_read(api, outcomes, path):
    person = Person(api)
    await person.sign_in()
    outcomes.clear()
    assert "This data comes from a database replica that is at most" in await person.text(path)
    assert set(outcomes) == {None}


async def test_every_audited_action_has_to_be_on_the_replica(api, database):
    async def count_marks() -> int:
        query = text("SELECT count(DISTINCT mark) FROM write_marks WHERE place >= 0")
        return await database.read(lambda connection: connection.scalar(query))

    await Person(api).sign_in()
    assert await count_marks() == 1
    admin = Admin(api, await api.admin())
    marks = "SELECT mark FROM write_marks WHERE place >= 0 ORDER BY mark"
    before = await database.read(lambda connection: connection.scalars(text(marks)).all())
    test = {name: GOOD_DESTINATION[name] for name in ("plugin", "settings")}
    await admin.send("POST", "/api/admin/destination-tests", json=test)
    after = await database.read(lambda connection: connection.scalars(text(marks)).all())
    assert set(after) - set(before)
