"""Deliveries over HTTP: finding them, reading one, sending one again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from api_server import problem
from delivery_rows import NOW, add_delivery, add_destination, rows
from tocsin.credentials import Scope
from tocsin.model import EventType
from tocsin.web.schemas.deliveries import DeliveryDetail, DeliveryList

DELIVERIES = "/api/admin/deliveries"
on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
def write(api):
    return api.services.database.write


def only(page: dict) -> dict:
    [delivery] = page["deliveries"]
    return delivery


async def test_a_delivery_has_all_its_members(write, admin):
    await write(add_destination)
    id_ = await write(add_delivery, remote_id="T-1", reason="503: busy")
    page = await admin.read(DELIVERIES)
    DeliveryList.model_validate(page)
    delivery = only(page)
    assert delivery.pop("event_id").startswith("evt_")
    assert delivery == {
        "id": id_,
        "destination": "soc",
        "event_type": "incident-alert",
        "subject": "incident:1",
        "title": None,
        "severity": None,
        "timestamp": "2026-11-21T12:00:00.000Z",
        "state": "dead",
        "reason": "503: busy",
        "attempts": 1,
        "due_at": None,
        "remote_id": "T-1",
        "remote_url": None,
        "created_at": "2026-11-21T12:00:00.000Z",
        "finished_at": "2026-11-21T12:00:00.000Z",
    }
    assert (page["total"], page["total_relation"], page["next_cursor"]) == (1, "eq", None)


async def test_one_is_read_with_its_event_and_attempts(write, admin):
    id_ = await write(add_delivery, tried=2, title="Odd sign-in", severity="High")
    found = await admin.read(f"{DELIVERIES}/{id_}")
    DeliveryDetail.model_validate(found)
    said = {"title": "Odd sign-in", "severity": "High"}
    assert {name: found[name] for name in said} == said
    assert found["event"]["data"] == {"incident_number": 1, **said}
    assert set(found["event"]) == {"event_type", "timestamp", "data"}
    assert [attempt["number"] for attempt in found["attempts"]] == [1, 2]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"state": "DEAD"}, "other"),
        ({"state": "on_hold"}, "held"),
        ({"destination": "other"}, "other"),
        ({"event_type": "Schedule-Disabled"}, "other"),
        ({"subject": "incident:7"}, "other"),
        ({"since": "2026-11-21T12:30:00+00:00"}, "other"),
        ({"until": "2026-11-21T12:30:00Z"}, "held"),
    ],
)
async def test_a_list_can_be_narrowed(write, admin, query, expected):
    def add(connection):
        add_destination(connection, "soc", "paused")
        other = {"to": "other", "number": 7, "kind": EventType.SCHEDULE_DISABLED}
        return {
            "held": add_delivery(connection, "pending"),
            "other": add_delivery(connection, at=NOW + timedelta(hours=1), **other),
        }

    made = await write(add)
    page = await admin.read(DELIVERIES, **query)
    assert (only(page)["id"], page["total"]) == (made[expected], 1)


async def test_the_next_page_is_linked(write, admin):
    made = [await write(add_delivery) for _ in range(3)]
    response = await admin.send("GET", f"{DELIVERIES}?state=dead&limit=2")
    link = response.links["next"]["url"].path_qs
    assert only(await admin.read(link))["id"] == made[0]


@on_sqlite
@pytest.mark.parametrize(
    "query",
    [
        "state=lost",
        "event_type=x",
        "since=yesterday",
        "since=2026-11-21T12:00:00",
        "until=1",
        "x=1",
    ],
)
async def test_a_wrong_parameter_is_named(admin, query):
    [mistake] = (await problem(await admin.send("GET", f"{DELIVERIES}?{query}"), 422))["errors"]
    assert mistake["path"] == query.partition("=")[0]


@pytest.mark.parametrize("state", ["dead", "delivered", "on_hold", "pending"])
async def test_a_delivery_can_be_sent_again(write, admin, clock, state):
    await write(add_destination)
    id_ = await write(add_delivery, state)
    clock.advance(minutes=1)
    sent = await admin.ask("POST", f"{DELIVERIES}/{id_}/replay", 202)
    assert (sent["state"], sent["due_at"]) == ("pending", "2026-11-21T12:01:00.000Z")
    [entry] = await admin.audited(action="delivery.replay")
    assert entry["target"] == f"delivery:{id_}"
    assert (entry["details"]["destination"], entry["details"]["state"]) == ("soc", state)


async def test_what_is_under_way_or_has_no_destination_any_more_is_refused(write, admin):
    def add(connection):
        add_destination(connection, "gone", "deleted")
        later = NOW + timedelta(minutes=1)
        under_way = add_delivery(connection, "pending", lease="lease_1", holder=1, due_at=later)
        return under_way, add_delivery(connection, to="gone")

    for id_, words in zip(
        await write(add), ("attempt is in progress", "gone was deleted"), strict=True
    ):
        answer = await admin.send("POST", f"{DELIVERIES}/{id_}/replay")
        assert words in (await problem(answer, 409))["detail"]
    assert await admin.audited(action="delivery.replay") == []


async def test_a_request_that_is_repeated_sends_once(write, api, admin):
    id_ = await write(add_delivery)
    key = {"Idempotency-Key": "one"}
    path = f"{DELIVERIES}/{id_}/replay"
    first = await admin.ask("POST", path, 202, headers=key)
    assert await admin.ask("POST", path, 202, headers=key) == first
    assert len(await admin.audited(action="delivery.replay")) == 1
    assert (await api.services.database.read(rows))[id_]["schedule_start"] == 1


@on_sqlite
@pytest.mark.parametrize("id_", ["dlv_1", "x"])
async def test_an_unknown_delivery_is_not_there(admin, id_):
    await problem(await admin.send("GET", f"{DELIVERIES}/{id_}"), 404)
    await problem(await admin.send("POST", f"{DELIVERIES}/{id_}/replay"), 404)


async def test_only_admins_see_deliveries(api):
    await problem(await api.client.get(DELIVERIES), 401)
    headers = {"X-API-Key": await api.key(*Scope)}
    await problem(await api.client.get(DELIVERIES, headers=headers), 403)
