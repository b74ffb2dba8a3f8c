"""What a key's life is made of: rotating and disabling it, and what then is accepted."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from api_callers import GOOD, KEYS, Admin, admitted, hashing_held, until
from api_server import open_api, problem
from tocsin.credentials import load_api_key, rotate_api_key

WRONG = {
    "negative grace": {"grace_period_days": -1},
    "long grace": {"grace_period_days": 366},
    "half a day of grace": {"grace_period_days": 0.5},
    "grace as text": {"grace_period_days": "7"},
    "grace of nothing": {"grace_period_days": None},
    "no days": {"expires_in_days": 0},
    "too many days": {"expires_in_days": 3651},
    "unknown": {"grace": 7},
}


@pytest.fixture
async def key(admin) -> dict:
    return await admin.create_key()


async def test_rotation_answers_exactly_the_members_of_the_specification(admin, key):
    response = await admin.send("POST", f"{KEYS}/{key['key_id']}/rotate", json={})
    assert response.status == 200
    assert response.headers["Cache-Control"] == "no-store"
    members = {"key_id", "api_key", "expires_at", "previous_key_expires_at"}
    assert set(await response.json()) == members


async def test_rotation_changes_the_secret_and_keeps_the_key_id(api, admin, key):
    rotated = await admin.rotate(key["key_id"])
    assert rotated["key_id"] == key["key_id"]
    assert rotated["api_key"][:25] == key["api_key"][:25]
    assert rotated["api_key"][25:] != key["api_key"][25:]
    assert await admitted(api, rotated["api_key"])


async def test_the_old_value_has_seven_days_where_nothing_else_is_said(admin, key):
    response = await admin.send("POST", f"{KEYS}/{key['key_id']}/rotate")
    assert response.status == 200, "the body may be left out"
    assert (await response.json())["previous_key_expires_at"] == "2026-11-28T12:00:00.000Z"


async def test_the_old_value_is_accepted_until_its_grace_ends_and_not_a_moment_longer(
    api, admin, clock, key
):
    rotated = await admin.rotate(key["key_id"], grace_period_days=1)
    assert rotated["previous_key_expires_at"] == "2026-11-22T12:00:00.000Z"
    clock.advance(days=1, microseconds=-1)
    assert await admitted(api, key["api_key"])
    clock.advance(microseconds=1)
    assert not await admitted(api, key["api_key"])
    assert await admitted(api, rotated["api_key"])


async def test_without_grace_the_old_value_ends_at_once(api, admin, key):
    assert await admitted(api, key["api_key"])
    rotated = await admin.rotate(key["key_id"], grace_period_days=0)
    assert rotated["previous_key_expires_at"] is None
    assert not await admitted(api, key["api_key"])
    assert await admitted(api, rotated["api_key"])


async def test_the_old_values_own_expiry_bounds_its_grace(api, admin, clock):
    key = await admin.create_key(expires_in_days=3)
    rotated = await admin.rotate(key["key_id"], grace_period_days=7, expires_in_days=100)
    assert rotated["previous_key_expires_at"] == "2026-11-24T12:00:00.000Z"
    assert rotated["expires_at"] == "2027-03-01T12:00:00.000Z"
    clock.advance(days=3)
    assert not await admitted(api, key["api_key"])
    assert await admitted(api, rotated["api_key"])


async def test_the_new_expiry_bounds_the_grace_of_the_old_value(api, admin, clock, key):
    rotated = await admin.rotate(key["key_id"], grace_period_days=30, expires_in_days=2)
    assert rotated["previous_key_expires_at"] == rotated["expires_at"] == "2026-11-23T12:00:00.000Z"
    clock.advance(days=2)
    assert not await admitted(api, key["api_key"])
    assert not await admitted(api, rotated["api_key"])


async def test_the_expiry_stays_where_no_other_is_given(admin, clock, key):
    clock.advance(minutes=10)
    assert (await admin.rotate(key["key_id"]))["expires_at"] == key["expires_at"]


async def test_there_is_one_previous_value_at_most(api, admin, key):
    second = await admin.rotate(key["key_id"], grace_period_days=30)
    third = await admin.rotate(key["key_id"], grace_period_days=30)
    values = [each["api_key"] for each in (key, second, third)]
    assert [await admitted(api, value) for value in values] == [False, True, True]


async def test_a_rotation_without_grace_ends_the_grace_of_the_one_before(api, admin, key):
    second = await admin.rotate(key["key_id"], grace_period_days=30)
    third = await admin.rotate(key["key_id"], grace_period_days=0)
    values = [each["api_key"] for each in (key, second, third)]
    assert [await admitted(api, value) for value in values] == [False, False, True]


async def test_the_record_says_when_it_was_rotated_and_how_long_the_old_value_lives(
    api, admin, clock, key
):
    path = f"{KEYS}/{key['key_id']}"
    clock.advance(minutes=1)
    await admin.rotate(key["key_id"], grace_period_days=1)
    item = await admin.read(path)
    assert item["last_rotated_at"] == item["updated_at"] == "2026-11-21T12:01:00.000Z"
    assert item["created_at"] == "2026-11-21T12:00:00.000Z"
    assert item["previous_key_expires_at"] == "2026-11-22T12:01:00.000Z"
    clock.advance(days=1)
    later = Admin(api, await api.admin())
    assert (await later.read(path))["previous_key_expires_at"] is None, "there is none any more"


async def test_a_disabled_key_cannot_be_rotated(admin, key):
    await admin.ask("DELETE", f"{KEYS}/{key['key_id']}")
    document = await problem(await admin.send("POST", f"{KEYS}/{key['key_id']}/rotate"), 409)
    assert document["detail"] == "The API key is disabled; only an active key can be rotated."


async def test_an_expired_key_cannot_be_rotated(api, admin, clock):
    key = await admin.create_key(expires_in_days=1)
    clock.advance(days=1)
    later = Admin(api, await api.admin())
    response = await later.send("POST", f"{KEYS}/{key['key_id']}/rotate", json={})
    assert "expired" in (await problem(response, 409))["detail"]


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_wrong_rotation_is_a_problem_of_the_callers_and_rotates_nothing(
    api, admin, key, wrong
):
    response = await admin.send("POST", f"{KEYS}/{key['key_id']}/rotate", json=wrong)
    assert len((await problem(response, 422))["errors"]) == 1
    assert (await admin.read(f"{KEYS}/{key['key_id']}"))["last_rotated_at"] is None


async def test_a_rotated_key_keeps_its_own_prefix(database, clock):
    async with open_api(database, clock) as api:
        old = await Admin(api, await api.admin()).create_key()
    async with open_api(database, clock, key_prefix="tocsin_") as api:
        rotated = await Admin(api, await api.admin()).rotate(old["key_id"])
        assert rotated["api_key"].startswith(f"sk_live_{old['key_id']}_")
        assert await admitted(api, rotated["api_key"])


async def test_disabling_answers_the_record_and_ends_the_key_at_once(api, admin, clock, key):
    assert await admitted(api, key["api_key"])
    clock.advance(minutes=1)
    answer = await admin.ask("DELETE", f"{KEYS}/{key['key_id']}")
    assert (answer["status"], answer["updated_at"]) == ("disabled", "2026-11-21T12:01:00.000Z")
    assert answer == await admin.read(f"{KEYS}/{key['key_id']}")
    assert not await admitted(api, key["api_key"])


async def test_disabling_ends_the_previous_value_too(api, admin, key):
    rotated = await admin.rotate(key["key_id"])
    assert await admitted(api, key["api_key"])
    assert await admitted(api, rotated["api_key"])
    answer = await admin.ask("DELETE", f"{KEYS}/{key['key_id']}")
    assert answer["previous_key_expires_at"] is None
    assert not await admitted(api, key["api_key"])
    assert not await admitted(api, rotated["api_key"])


async def test_disabling_again_answers_the_same_and_is_recorded_once(admin, clock, key):
    first = await admin.ask("DELETE", f"{KEYS}/{key['key_id']}")
    clock.advance(minutes=1)
    assert await admin.ask("DELETE", f"{KEYS}/{key['key_id']}") == first
    assert len(await admin.audited(action="api-key.disable")) == 1


async def test_disabled_wins_over_expired(api, admin, clock):
    key = await admin.create_key(expires_in_days=1)
    await admin.ask("DELETE", f"{KEYS}/{key['key_id']}")
    clock.advance(days=1)
    later = Admin(api, await api.admin())
    assert (await later.read(f"{KEYS}/{key['key_id']}"))["status"] == "disabled"


async def test_an_expired_key_can_be_disabled(api, admin, clock):
    key = await admin.create_key(expires_in_days=1)
    clock.advance(days=1)
    later = Admin(api, await api.admin())
    answer = await later.ask("DELETE", f"{KEYS}/{key['key_id']}")
    assert answer["status"] == "disabled"


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_rotation_acts_on_the_very_next_request_on_every_node(nodes):
    first, second = nodes
    admin = Admin(first, await first.admin())
    key = await admin.create_key()
    assert await admitted(second, key["api_key"]), "so that it is remembered there"
    rotated = await admin.rotate(key["key_id"], grace_period_days=0)
    for node in nodes:
        assert not await admitted(node, key["api_key"])
        assert await admitted(node, rotated["api_key"])


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_disabling_ends_both_values_on_every_node(nodes):
    first, second = nodes
    admin = Admin(first, await first.admin())
    key = await admin.create_key()
    values = [key["api_key"], (await admin.rotate(key["key_id"]))["api_key"]]
    for node in nodes:
        assert [await admitted(node, value) for value in values] == [True, True]
    await Admin(second, await second.admin()).ask("DELETE", f"{KEYS}/{key['key_id']}")
    for node in nodes:
        assert [await admitted(node, value) for value in values] == [False, False]


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_of_two_rotations_at_once_neither_is_lost(nodes):
    admins = [Admin(node, await node.admin()) for node in nodes]
    key = await admins[0].create_key()
    rotated = await asyncio.gather(*(admin.rotate(key["key_id"]) for admin in admins))
    assert not await admitted(nodes[0], key["api_key"])
    for each in rotated:
        assert await admitted(nodes[0], each["api_key"])


async def test_a_value_that_is_replaced_while_it_is_proven_is_refused(api, admin, clock, key):
    with hashing_held(api):
        request = asyncio.create_task(admitted(api, key["api_key"]))
        secret = key["api_key"][25:68]
        await until(lambda: api.services.hasher.is_verifying(key["key_id"], secret))
        await api.services.database.write(
            rotate_api_key, key["key_id"], "other", now=clock.now(), grace=timedelta(0)
        )
    assert not await request


async def test_a_key_that_is_rotated_keeps_its_name_scopes_and_creator(api, admin):
    key = await admin.create_key(**GOOD | {"description": "x"})
    before = await api.services.database.read(load_api_key, key["key_id"])
    await admin.rotate(key["key_id"])
    after = await api.services.database.read(load_api_key, key["key_id"])
    kept = ("id", "name", "description", "scopes", "created_by", "created_at", "prefix")
    assert [getattr(before, name) for name in kept] == [getattr(after, name) for name in kept]
