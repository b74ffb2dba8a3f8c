"""Replays of many deliveries over HTTP."""

from __future__ import annotations

import pytest

from api_server import problem
from delivery_rows import add_delivery, add_destination, add_event
from tocsin.credentials import Scope
from tocsin.delivery import replay_batch
from tocsin.web.schemas.replays import Replay, ReplayList

REPLAYS = "/api/admin/replays"
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def write(api):
    return api.services.database.write


async def test_a_replay_tells_how_far_it_has_come(write, admin, clock):
    for _ in range(3):
        await write(add_delivery)
    made = await admin.ask("POST", REPLAYS, 202, json={})
    Replay.model_validate(made)
    assert (made["state"], made["total"], made["replayed"]) == ("running", 3, 0)
    await write(replay_batch, clock.now(), most=2)
    path = f"{REPLAYS}/{made['id']}"
    assert (await admin.read(path))["replayed"] == 2
    await write(replay_batch, clock.now())
    done = await admin.read(path)
    assert (done["state"], done["replayed"]) == ("completed", 3)
    assert done["finished_at"] == "2026-11-21T12:00:00.000Z"


async def test_it_is_of_what_was_asked_for(write, admin):
    await write(add_destination)
    await write(add_delivery, "delivered")
    await write(add_delivery, "delivered", to="other")
    body = {
        "state": "Delivered",
        "destination": "soc",
        "event_type": "incident-alert",
        "since": "2026-11-21T13:00:00+01:00",
        "until": "2026-11-21T13:00:00Z",
    }
    made = await admin.ask("POST", REPLAYS, 202, json=body)
    asked = {"state": "delivered", "since": "2026-11-21T12:00:00.000Z"}
    assert made["filter"] == body | asked | {"until": "2026-11-21T13:00:00.000Z"}
    assert (made["total"], made["created_by"]) == (1, "ana")
    [entry] = await admin.audited(action="deliveries.replay")
    assert entry["target"] == f"replay:{made['id']}"
    assert entry["details"] == made["filter"] | {"total": 1}


async def test_one_can_be_cancelled_and_stays_so(write, admin, clock):
    await write(add_delivery)
    made = await admin.ask("POST", REPLAYS, 202, json={})
    path = f"{REPLAYS}/{made['id']}/cancel"
    cancelled = await admin.ask("POST", path)
    assert (cancelled["state"], cancelled["replayed"]) == ("cancelled", 0)
    clock.advance(minutes=1)
    assert await admin.ask("POST", path) == cancelled
    assert await write(replay_batch, clock.now()) is None
    assert len(await admin.audited(action="replay.cancel")) == 1


async def test_the_newest_is_listed_first(admin):
    made = [await admin.ask("POST", REPLAYS, 202, json={}) for _ in range(3)]
    page = await admin.read(REPLAYS, limit=2)
    ReplayList.model_validate(page)
    assert page["replays"] == [made[2], made[1]]
    rest = await admin.read(REPLAYS, limit=2, cursor=page["next_cursor"])
    assert (rest["replays"], rest["total"], rest["next_cursor"]) == ([made[0]], 3, None)


@on_sqlite
@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"state": "pending"}, "state"),
        ({"state": 1}, "state"),
        ({"event_type": []}, "event_type"),
        ({"since": 5}, "since"),
        ({"until": "2026-11-21"}, "until"),
        ({"destination": "a\0"}, "destination"),
        ({"destination": "never-was"}, "destination"),
        ({"subject": "incident:1"}, "subject"),
    ],
)
async def test_a_wrong_member_is_named(admin, body, path):
    [mistake] = (await problem(await admin.send("POST", REPLAYS, json=body), 422))["errors"]
    assert mistake["path"] == path


@on_sqlite
async def test_an_unknown_replay_is_not_there(admin):
    await problem(await admin.send("GET", f"{REPLAYS}/rpl_1"), 404)
    await problem(await admin.send("POST", f"{REPLAYS}/rpl_1/cancel"), 404)


async def test_only_admins_replay(api):
    await problem(await api.client.post(REPLAYS, json={}), 401)
    headers = {"X-API-Key": await api.key(*Scope)}
    await problem(await api.client.post(REPLAYS, json={}, headers=headers), 403)


async def test_events_of_nobody_are_routed_again(write, admin):
    await write(add_event)
    await write(add_delivery)
    body = {"since": "2026-11-21T12:00:00Z", "until": "2026-11-21T12:00:01Z"}
    answers = [
        await admin.ask("POST", "/api/admin/events/reroute", json=body | more)
        for more in ({"dry_run": True}, {}, {})
    ]
    assert answers == [{"events": count, "next_since": None} for count in (1, 1, 0)]
    entries = await admin.audited(action="events.reroute")
    assert [entry["details"]["events"] for entry in entries] == [0, 1]


@on_sqlite
async def test_a_time_may_be_as_early_or_late_as_can_be_written(admin):
    body = {"since": "0001-01-01T00:00:00+14:00", "until": "9999-12-31T23:59:59-14:00"}
    made = await admin.ask("POST", REPLAYS, 202, json=body)
    assert made["filter"]["since"] == "1970-01-01T00:00:00.000Z"
    assert made["filter"]["until"] == "9999-01-01T00:00:00.000Z"
