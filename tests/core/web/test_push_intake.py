"""Pushes that an intake accepts, as senders see them."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from api_server import PUSH_TOKEN, PUSHED, api, problem
from memory_intake import MemoryIntake
from tocsin.incidents import list_coverage
from tocsin.stops import StopKind, StopOrder, begin_stop
from tocsin.store import DatabaseFailure, DatabaseFault

__all__ = ["api"]

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

PATH = f"/api/push/{PUSHED}"
HEADERS = {"Authorization": f"Bearer {PUSH_TOKEN}", "Content-Type": "application/json"}
CASE = {"external_id": "case-17", "title": "Odd sign-in", "severity": "High"}


@pytest.fixture
def intake(api) -> MemoryIntake:
    api.services.inbox.intake = MemoryIntake()
    return api.services.inbox.intake


async def push(api, body, **headers):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await api.client.post(PATH, data=body, headers=HEADERS | headers)


async def queued(intake) -> list[bytes]:
    page = await intake.fetch(PUSHED, None, 100)
    return [push.body for push in page.pushes]


async def test_an_accepted_push_is_answered_with_202_and_kept_untouched(api, intake):
    response = await push(api, [CASE, {"title": "nameless"}])
    assert response.status == 202
    counts = {"received": 2, "new": None, "changed": None, "rejected": 1}
    assert await response.json() == {"provider": PUSHED, **counts}
    assert await queued(intake) == [json.dumps([CASE, {"title": "nameless"}]).encode()]


async def test_a_wrong_token_and_a_wrong_body_never_reach_the_intake(api, intake):
    await problem(await push(api, CASE, Authorization="Bearer wrong"), 401)
    await problem(await push(api, b"{"), 422)
    assert await queued(intake) == []


async def test_a_key_names_a_push_and_no_other_one(api, intake):
    for _ in range(2):
        assert (await push(api, CASE, **{"Idempotency-Key": "a"})).status == 202
    reused = await push(api, CASE | {"severity": "Low"}, **{"Idempotency-Key": "a"})
    await problem(reused, 422)
    await problem(await push(api, CASE, **{"Idempotency-Key": "\t"}), 400)
    for _ in range(2):  # without a key, the same body is another push
        assert (await push(api, CASE)).status == 202
    assert len(await queued(intake)) == 3
    await api.services.inbox.flush()
    rows = await api.services.database.read(list_coverage, PUSHED, 10)
    assert [row["outcome"] for row in rows] == ["key-reused"]


async def test_a_push_is_stored_at_once_while_the_intake_is_away(api, intake):
    intake.is_away = True
    response = await push(api, CASE)
    assert response.status == 200
    assert (await response.json())["new"] == 1


async def test_a_node_without_its_database_is_ready_while_its_intake_accepts_pushes(api, intake):
    api.services.node.fault = DatabaseFault.UNREACHABLE
    response = await api.client.get("/readyz")
    found = await response.json()
    assert (response.status, found["status"], found["intake"]) == (200, "ready", True)
    assert found["fault"] == "unreachable"
    intake.is_away = True
    assert (await api.client.get("/readyz")).status == 503


async def test_a_push_is_accepted_while_the_database_fails_and_known_stops_stay(
    api, intake, clock, monkeypatch
):
    async def fail(*_):
        raise DatabaseFailure("gone", DatabaseFault.UNREACHABLE)

    database = api.services.database
    with monkeypatch.context() as patch:
        patch.setattr(database, "lookup", fail)
        assert (await push(api, CASE)).status == 202
    order = StopOrder("ana", until=clock.now() + timedelta(minutes=1))
    await database.write(begin_stop, StopKind.PROVIDER, PUSHED, order, clock.now())
    clock.advance(seconds=1)
    await problem(await push(api, CASE), 503)
    monkeypatch.setattr(database, "lookup", fail)
    clock.advance(seconds=2)
    await problem(await push(api, CASE), 503)
    clock.advance(minutes=1)
    assert (await push(api, CASE)).status == 202
