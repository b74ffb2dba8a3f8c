"""A quarantined push is mapped again after a fix: once, by operators, and only if it is whole."""

from __future__ import annotations

import asyncio
import json

import pytest
from sqlalchemy import func, select, text, update

from api_server import PUSH_TOKEN, PUSHED, problem
from incident_rows import add_incidents, add_quarantined
from tocsin.incidents import list_coverage
from tocsin.stops import StopKind, StopOrder, begin_stop
from tocsin.store.tables import events, incidents, quarantine

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
PATH = "/api/admin/quarantine"
RETRY = f"{PATH}/1/retry"
CASE = {"external_id": "case-17", "title": "Odd sign-in", "severity": "High"}
JSON = {"Content-Type": "application/json", "Authorization": f"Bearer {PUSH_TOKEN}"}


async def keep(api, clock, body: object = CASE, **values) -> None:
    """Add a push that an earlier version could not parse."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    await api.services.database.write(
        add_quarantined, PUSHED, clock.now(), content=content, **values
    )


async def push(api, body: object) -> dict:
    response = await api.client.post(f"/api/push/{PUSHED}", json=body, headers=JSON)
    assert response.status == 200, await response.text()
    return await response.json()


async def stored(api, *columns) -> list[tuple]:
    """Return these columns of the incidents."""
    return await api.services.database.read(
        lambda connection: [tuple(row) for row in connection.execute(select(*columns))]
    )


async def test_a_push_that_maps_now_is_stored_alerted_and_marked(api, admin, clock):
    await keep(api, clock)
    clock.advance(minutes=5)
    answer = await admin.ask("POST", RETRY)
    counts = {"received": 1, "new": 1, "changed": 0, "rejected": 0, "records": [1]}
    assert answer == {"id": 1, "provider": PUSHED, **counts}
    assert await stored(api, incidents.c.external_id, incidents.c.occurred_at) == [
        ("case-17", clock.now().replace(minute=0))
    ]
    assert await stored(api, func.count(events.c.id)) == [(1,)]
    record = await admin.read(f"{PATH}/1")
    assert (record["retried_at"], record["retried_by"]) == ("2026-11-21T12:05:00.000Z", "ana")
    assert (await admin.read(PATH))["records"][0]["retried_by"] == "ana"
    [entry] = await admin.audited(action="quarantine.retry")
    assert (entry["actor"], entry["target"]) == ("admin:ana", "quarantine:1")
    assert entry["details"] == {"provider": PUSHED, **counts}
    [interval] = await api.services.database.read(list_coverage, PUSHED, 10)
    assert (interval["outcome"], interval["new"]) == ("read", 1)


async def test_a_retried_record_is_not_retried_again(api, admin, clock):
    await keep(api, clock)
    await admin.ask("POST", RETRY)
    refusal = await problem(await admin.send("POST", RETRY), 409)
    assert refusal["detail"] == "The record was already retried."
    assert await stored(api, func.count(incidents.c.number)) == [(1,)]


@on_sqlite
@pytest.mark.parametrize("body", [b"{", [{"title": "nameless"}], b"\xff"])
async def test_a_push_that_still_does_not_map_changes_nothing(api, admin, clock, body):
    await keep(api, clock, body)
    before = await admin.read(PATH)
    refusal = await problem(await admin.send("POST", RETRY), 409)
    assert refusal["detail"].startswith("The record still cannot be parsed: ")
    assert await admin.read(PATH) == before
    assert await admin.audited(action="quarantine.retry") == []
    assert await stored(api, func.count(incidents.c.number)) == [(0,)]


@on_sqlite
async def test_what_does_not_map_of_a_push_is_quarantined_by_itself(api, admin, clock):
    await keep(api, clock, [CASE, {"title": "nameless"}])
    answer = await admin.ask("POST", RETRY)
    assert (answer["received"], answer["new"], answer["rejected"]) == (2, 1, 1)
    rest, retried = (await admin.read(PATH))["records"]
    assert (rest["location"], rest["retried_at"]) == ("incident 2 of 2", None)
    assert retried["retried_at"] is not None


@on_sqlite
@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"content": b"[" + b" " * 16_383}, "16 KiB"),
        ({"content": b""}, "did not store the content"),
        ({"location": "incident 2 of 2"}, "did not store the part of the request"),
        ({"stream": "changed", "provider": "edge"}, "only a backfill"),
        ({"provider": "gone"}, "No push provider named 'gone'"),
    ],
)
async def test_what_cannot_be_mapped_again_is_refused_with_the_reason(
    api, admin, clock, values, reason
):
    await keep(api, clock)
    await api.services.database.write(
        lambda connection: connection.execute(update(quarantine).values(values)) and None
    )
    refusal = await problem(await admin.send("POST", RETRY), 409)
    assert reason in refusal["detail"]
    obstacle = (await admin.read(f"{PATH}/1"))["retry_obstacle"]
    assert obstacle == (None if "provider" in values and len(values) == 1 else refusal["detail"])


@on_sqlite
async def test_an_incident_that_has_changed_since_stays_as_it_is(api, admin, clock):
    await keep(api, clock, [CASE, CASE | {"external_id": "case-18"}])
    clock.advance(minutes=5)
    await push(api, CASE | {"status": "Closed"})
    clock.advance(minutes=5)
    answer = await admin.ask("POST", RETRY)
    assert (answer["received"], answer["new"], answer["changed"]) == (2, 1, 0)
    found = await stored(api, incidents.c.external_id, incidents.c.status)
    assert sorted(found) == [("case-17", "Closed"), ("case-18", "New")]


@pytest.mark.parametrize("tries", [[[1, 2]], [[1], [2]], [[2], [1]], [[3, 2], [1]], [[1], [3, 2]]])
async def test_the_version_that_was_received_last_stays(api, admin, clock, tries):
    for status in ("New", "Closed"):
        await keep(api, clock, CASE | {"status": status})
        clock.advance(minutes=5)
    await keep(api, clock, CASE | {"external_id": "case-18"})
    for records in tries:
        clock.advance(minutes=5)
        answer = await admin.ask("POST", f"{PATH}-retries", json={"records": records})
        assert {each["outcome"] for each in answer["results"]} == {"retried"}
    found = await stored(api, incidents.c.status)
    assert ("Closed",) in found


async def test_of_versions_that_are_retried_at_the_same_time_the_last_received_stays(
    api, admin, clock
):
    for number in range(5):
        case = CASE | {"external_id": f"case-{number}"}
        for status in ("New", "Closed"):
            await keep(api, clock, case | {"status": status})
            clock.advance(minutes=5)
        paths = [f"{PATH}/{2 * number + place}/retry" for place in (2, 1)]
        answers = await asyncio.gather(*(admin.send("POST", path) for path in paths))
        assert [answer.status for answer in answers] == [200, 200]
    assert await stored(api, incidents.c.status) == [("Closed",)] * 5


@on_sqlite
async def test_a_version_that_was_pushed_between_two_retried_ones_stays(api, admin, clock):
    await keep(api, clock, CASE | {"title": "First"})
    clock.advance(minutes=5)
    await push(api, CASE | {"title": "Second"})
    clock.advance(minutes=5)
    await keep(api, clock, CASE | {"title": "Third"})
    for record, title in ((1, "Second"), (2, "Third")):
        clock.advance(minutes=5)
        await admin.ask("POST", f"{PATH}/{record}/retry")
        assert await stored(api, incidents.c.title) == [(title,)]


async def test_a_record_that_cannot_be_stored_does_not_affect_the_others(api, admin, clock):
    def occupy(connection) -> None:
        add_incidents(connection, title=CASE["title"])
        connection.execute(text("CREATE UNIQUE INDEX titles ON incidents (title)"))

    await api.services.database.write(occupy)
    await keep(api, clock)
    await keep(api, clock, CASE | {"external_id": "case-18", "title": "Other"})
    answer = await admin.ask("POST", f"{PATH}-retries", json={"records": [1, 2]})
    assert [each["outcome"] for each in answer["results"]] == ["refused", "retried"]
    refusal = await problem(await admin.send("POST", RETRY), 409)
    assert refusal["detail"] == answer["results"][0]["detail"]
    assert refusal["detail"].startswith("Another push has stored one of the incidents")
    await api.services.database.write(lambda c: c.execute(text("DROP INDEX titles")) and None)
    await admin.ask("POST", RETRY)
    assert len(await stored(api, incidents.c.number)) == 3


@on_sqlite
async def test_times_of_change_tell_which_version_is_newer(api, admin, clock):
    at = {"changed_at": "2026-11-21T10:00:00Z"}
    await keep(api, clock, CASE | {"changed_at": "2026-11-21T11:00:00Z", "status": "Closed"})
    clock.advance(minutes=5)
    await push(api, CASE | at)
    answer = await admin.ask("POST", RETRY)
    assert (answer["new"], answer["changed"]) == (0, 1)
    assert await stored(api, incidents.c.status) == [("Closed",)]


@on_sqlite
async def test_a_stopped_provider_or_a_suspended_node_retries_nothing(api, admin, clock):
    await keep(api, clock)
    api.services.node.suspension = "the clock is wrong"
    await problem(await admin.send("POST", RETRY), 503)
    await problem(await admin.send("POST", f"{PATH}-retries", json={"records": [1]}), 503)
    api.services.node.suspension = None
    order = StopOrder(by="ana", until=None, reason=None)
    await api.services.database.write(begin_stop, StopKind.PROVIDER, PUSHED, order, clock.now())
    await problem(await admin.send("POST", RETRY), 503)
    answer = await admin.ask("POST", f"{PATH}-retries", json={"records": [1]})
    [result] = answer["results"]
    assert (result["outcome"], "disabled the provider" in result["detail"]) == ("refused", True)
    assert await stored(api, func.count(incidents.c.number)) == [(0,)]


@on_sqlite
@pytest.mark.parametrize("record", ["2", "0", "x"])
async def test_a_record_that_is_not_there_is_not_retried(admin, record):
    await problem(await admin.send("POST", f"{PATH}/{record}/retry"), 404)
