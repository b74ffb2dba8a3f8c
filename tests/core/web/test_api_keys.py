"""Creating API keys and reading them."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from api_callers import GOOD, KEY_MEMBERS, Admin, admitted
from api_callers import KEYS as PATH
from api_server import open_api, problem
from tocsin.credentials import load_api_key, parse_key
from tocsin.store.tables import api_keys
from tocsin.web.schemas.api_keys import CreatedApiKey


@pytest.fixture
async def headers(api) -> dict[str, str]:
    return await api.admin()


async def test_a_new_key_can_be_used_at_once(api, headers):
    response = await api.client.post(PATH, json=GOOD, headers=headers)
    assert response.status == 201
    assert response.headers["Cache-Control"] == "no-store"
    created = await response.json()
    CreatedApiKey.model_validate(created)
    used = {created["header_name"]: created["api_key"]}
    assert (await api.client.get("/api/v1/incidents", headers=used)).status == 200


async def test_what_is_stored_is_what_was_asked_for_and_never_the_secret(api, headers):
    scopes = ["search:read", "graph:read", "search:read"]
    body = {"name": " night ", "description": "x", "scopes": scopes, "expires_in_days": 30}
    created = await (await api.client.post(PATH, json=body, headers=headers)).json()
    key = await api.services.database.read(load_api_key, created["key_id"])
    assert key is not None
    assert (key.id, key.name, key.description) == (created["id"], "night", "x")
    assert list(key.scopes) == created["scopes"] == ["graph:read", "search:read"]
    assert key.created_by == "ana"
    assert created["expires_at"] == "2026-12-21T12:00:00.000Z"
    assert parse_key(created["api_key"]).secret not in repr(key)


async def test_a_key_lives_for_a_year_where_nothing_else_is_said(api, headers):
    created = await (await api.client.post(PATH, json=GOOD, headers=headers)).json()
    assert created["expires_at"] == "2027-11-21T12:00:00.000Z"


async def test_an_invalid_scope_is_named_beside_the_valid_ones(api, headers):
    body = GOOD | {"scopes": ["incidents:delete", "incidents:read", "all"]}
    document = await problem(await api.client.post(PATH, json=body, headers=headers), 400)
    assert document["detail"] == (
        "Unknown scope 'all', 'incidents:delete'; valid scopes are graph:read, incidents:read, "
        "incidents:write, investigations:read, investigations:write, search:read."
    )


async def test_every_wrong_field_is_named_at_once(api, headers):
    body = {"name": "", "scopes": [1], "expires_in_days": "7", "nam": "x"}
    document = await problem(await api.client.post(PATH, json=body, headers=headers), 422)
    paths = [error["path"] for error in document["errors"]]
    assert sorted(paths) == ["expires_in_days", "nam", "name", "scopes.0"]


WRONG = {
    "no name": {"name": ""},
    "blank name": {"name": "  "},
    "long name": {"name": "x" * 101},
    "control character": {"name": "a\x00b"},
    "no scope": {"scopes": []},
    "one scope, bare": {"scopes": "incidents:read"},
    "long description": {"description": "x" * 1001},
    "nul in the description": {"description": "\x00"},
    "no days": {"expires_in_days": 0},
    "too many days": {"expires_in_days": 3651},
    "half a day": {"expires_in_days": 0.5},
    "a truth": {"expires_in_days": True},
    "null": {"description": None},
    "unknown": {"colour": "red"},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_wrong_body_is_a_problem_of_the_callers(api, headers, wrong):
    response = await api.client.post(PATH, json=GOOD | wrong, headers=headers)
    assert len((await problem(response, 422))["errors"]) == 1


NOT_TAKEN = {
    "not JSON": ("application/json", b"{", 400),
    "empty": ("application/json", b"", 400),
    "not UTF-8": ("application/json", b'{"name": "\xff"}', 400),
    "nested": ("application/json", b"[" * 60_000, 400),
    "a list": ("application/json", b"[]", 422),
    "a form": ("application/x-www-form-urlencoded", b"name=x", 415),
    "text": ("text/plain", b"{}", 415),
    "too large": ("application/json", b" " * (64 * 1024 + 1), 413),
}


@pytest.mark.parametrize(("content_type", "body", "status"), NOT_TAKEN.values(), ids=NOT_TAKEN)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_what_is_no_body_is_refused(api, headers, content_type, body, status):
    typed = headers | {"Content-Type": content_type}
    await problem(await api.client.post(PATH, data=body, headers=typed), status)


async def test_a_body_that_is_not_encoded_as_it_says_is_refused(api, headers):
    typed = headers | {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    response = await api.client.post(PATH, data=b"{}", headers=typed)
    assert response.status == 400


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_the_longest_of_everything_is_taken(api, headers):
    body = {
        "name": "é" * 100,
        "description": "\n" * 1000,
        "scopes": ["incidents:read"],
        "expires_in_days": 3650,
    }
    assert (await api.client.post(PATH, json=body, headers=headers)).status == 201


async def test_a_created_key_is_answered_with_exactly_the_members_of_the_specification(admin):
    created = await admin.create_key()
    assert set(created) == {
        "id",
        "key_id",
        "api_key",
        "name",
        "scopes",
        "expires_at",
        "header_name",
    }
    assert created["header_name"] == "X-API-Key"


async def test_a_key_is_its_prefix_its_key_id_an_underscore_and_a_secret(admin):
    created = await admin.create_key()
    start, secret = created["api_key"][:25], created["api_key"][25:]
    assert start == f"sk_live_{created['key_id']}_"
    assert len(secret) == 43 + 6
    assert secret.isalnum()
    listed = await admin.read(f"{PATH}/{created['key_id']}")
    assert listed["key_prefix"] == f"sk_live_{created['key_id']}"


async def test_a_key_is_read_with_exactly_the_members_of_a_list_item(admin):
    created = await admin.create_key(description="for the night shift")
    item = await admin.read(f"{PATH}/{created['key_id']}")
    assert set(item) == KEY_MEMBERS
    assert item == {
        "id": created["id"],
        "key_id": created["key_id"],
        "key_prefix": f"sk_live_{created['key_id']}",
        "name": "playbooks",
        "description": "for the night shift",
        "status": "active",
        "scopes": ["incidents:read"],
        "created_by": "ana",
        "created_at": "2026-11-21T12:00:00.000Z",
        "updated_at": "2026-11-21T12:00:00.000Z",
        "expires_at": "2027-11-21T12:00:00.000Z",
        "last_used_at": None,
        "last_rotated_at": None,
        "previous_key_expires_at": None,
    }


async def test_the_id_is_the_records_own_and_no_two_keys_share_one(admin):
    keys = [await admin.create_key() for _ in range(3)]
    assert len({key["id"] for key in keys} | {key["key_id"] for key in keys}) == 6


async def test_the_value_is_shown_at_creation_alone(admin):
    created = await admin.create_key()
    for path in (PATH, f"{PATH}/{created['key_id']}", f"{PATH}?search=sk_live"):
        text = await (await admin.send("GET", path)).text()
        assert created["api_key"][25:] not in text
        assert 'api_key"' not in text
        assert "argon2" not in text


async def test_only_a_salted_hash_of_the_value_is_stored(api, admin):
    created = await admin.create_key()
    [row] = await api.services.database.read(lambda c: c.execute(select(api_keys)).all())
    assert row.secret_hash.startswith("$argon2id$")
    assert created["api_key"][25:] not in str(row)


async def test_when_a_key_was_last_used_is_null_until_it_was(api, admin, clock):
    created = await admin.create_key()
    path = f"{PATH}/{created['key_id']}"
    clock.advance(seconds=30)
    assert await admitted(api, created["api_key"])
    assert (await admin.read(path))["last_used_at"] is None, "it is written off the path"
    await api.door.usage.flush()
    assert (await admin.read(path))["last_used_at"] == "2026-11-21T12:00:30.000Z"


async def test_a_key_expires_at_the_moment_that_it_names_and_authenticates_no_more(
    api, admin, clock
):
    created = await admin.create_key(expires_in_days=1)
    clock.advance(days=1, microseconds=-1)
    assert await admitted(api, created["api_key"])
    clock.advance(microseconds=1)
    assert not await admitted(api, created["api_key"])
    item = await Admin(api, await api.admin()).read(f"{PATH}/{created['key_id']}")
    assert (item["status"], item["expires_at"]) == ("expired", "2026-11-22T12:00:00.000Z")


@pytest.mark.parametrize("key_id", ["k" * 16, "x", "%00", "%25", "é", "k" * 5000, "a.b"])
async def test_an_unknown_or_malformed_key_id_is_not_found(admin, key_id):
    await problem(await admin.send("GET", f"{PATH}/{key_id}"), 404)
    await problem(await admin.send("DELETE", f"{PATH}/{key_id}"), 404)
    await problem(await admin.send("POST", f"{PATH}/{key_id}/rotate"), 404)


async def test_a_key_stays_valid_when_the_prefix_of_new_ones_is_changed(database, clock):
    async with open_api(database, clock) as api:
        old = await Admin(api, await api.admin()).create_key()
    async with open_api(database, clock, key_prefix="tocsin_") as api:
        admin = Admin(api, await api.admin())
        new = await admin.create_key()
        assert new["api_key"].startswith(f"tocsin_{new['key_id']}_")
        assert (await admin.read(f"{PATH}/{old['key_id']}"))["key_prefix"].startswith("sk_live_")
        assert await admitted(api, old["api_key"])
        assert await admitted(api, new["api_key"])


async def test_the_prefix_is_a_part_of_the_key(api, admin):
    from tocsin.credentials.records import add_checksum

    created = await admin.create_key()
    other = add_checksum(created["api_key"][:-6].replace("sk_live_", "sk_test_"))
    assert not await admitted(api, other)
