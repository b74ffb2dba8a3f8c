"""API clients: creating them, reading them, and what their secrets and tokens are worth."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import select

from api_callers import (
    CLIENT_MEMBERS,
    CLIENTS,
    GOOD,
    Admin,
    admitted,
    obtain_token,
    request_token,
    token_admitted,
)
from api_server import URL, open_api, problem
from tocsin.store.tables import api_clients
from tocsin.web.endpoints import ENDPOINTS

UNKNOWN = "cl_" + "x" * 16


@pytest.fixture
async def client(admin) -> dict:
    return await admin.create_client()


async def refused(api, client) -> str:
    """Return what the client is told, whom the token endpoint does not let in."""
    response = await request_token(api, client)
    assert response.status == 401
    answer = await response.json()
    assert answer["error"] == "invalid_client"
    return answer["error_description"]


async def test_a_created_client_is_answered_with_exactly_the_members_of_the_specification(admin):
    response = await admin.send("POST", CLIENTS, json=GOOD)
    assert response.status == 201
    assert response.headers["Cache-Control"] == "no-store"
    created = await response.json()
    assert set(created) == {"id", "client_id", "client_secret", "name", "scopes", "token_endpoint"}
    assert created["token_endpoint"] == f"{URL}/oauth/token"


async def test_the_token_endpoint_is_where_the_settings_put_it(database, clock):
    async with open_api(database, clock, auth_url="https://auth.example/") as api:
        created = await Admin(api, await api.admin()).create_client()
    assert created["token_endpoint"] == "https://auth.example/oauth/token"


async def test_id_and_secret_hold_only_what_every_client_encodes_alike(client):
    assert re.fullmatch(r"cl_[0-9A-Za-z]{16}", client["client_id"])
    assert re.fullmatch(r"cs_live_[0-9A-Za-z]{49}", client["client_secret"])


async def test_a_new_client_can_obtain_a_token_at_once(api, client):
    assert await token_admitted(api, await obtain_token(api, client))


async def test_a_client_is_read_with_exactly_the_members_of_a_list_item(admin):
    created = await admin.create_client(name=" soar ", description="x")
    item = await admin.read(f"{CLIENTS}/{created['client_id']}")
    assert set(item) == CLIENT_MEMBERS
    assert item == {
        "id": created["id"],
        "client_id": created["client_id"],
        "name": "soar",
        "description": "x",
        "status": "active",
        "scopes": ["incidents:read"],
        "created_by": "ana",
        "created_at": "2026-11-21T12:00:00.000Z",
        "last_used_at": None,
    }


async def test_the_secret_is_never_in_a_list_or_a_detail(admin, client):
    for path in (CLIENTS, f"{CLIENTS}/{client['client_id']}"):
        text = await (await admin.send("GET", path)).text()
        assert client["client_id"] in text
        assert "secret" not in text
        assert "cs_live_" not in text
        assert "argon2" not in text


async def test_only_a_salted_hash_of_the_secret_is_stored(api, client):
    [row] = await api.services.database.read(lambda c: c.execute(select(api_clients)).all())
    assert row.secret_hash.startswith("$argon2id$")
    assert client["client_secret"] not in str(row)


async def test_scopes_are_validated_when_the_client_is_created(admin):
    body = GOOD | {"scopes": ["incidents:delete", "incidents:read", "all"]}
    document = await problem(await admin.send("POST", CLIENTS, json=body), 400)
    assert document["detail"] == (
        "Unknown scope 'all', 'incidents:delete'; valid scopes are graph:read, incidents:read, "
        "incidents:write, investigations:read, investigations:write, search:read."
    )
    assert (await admin.read(CLIENTS))["total"] == 0


async def test_every_wrong_field_is_named_at_once(admin):
    body = {"name": "", "scopes": [1], "description": 1, "expires_in_days": 7}
    document = await problem(await admin.send("POST", CLIENTS, json=body), 422)
    paths = [error["path"] for error in document["errors"]]
    assert sorted(paths) == ["description", "expires_in_days", "name", "scopes.0"]


WRONG = {
    "no name": {"name": None},
    "blank name": {"name": " "},
    "long name": {"name": "x" * 101},
    "no scope": {"scopes": []},
    "one scope, bare": {"scopes": "incidents:read"},
    "long description": {"description": "x" * 1001},
    "unknown": {"client_id": UNKNOWN},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_wrong_body_is_a_problem_of_the_callers(admin, wrong):
    response = await admin.send("POST", CLIENTS, json=GOOD | wrong)
    assert len((await problem(response, 422))["errors"]) == 1


@pytest.mark.parametrize("client_id", [UNKNOWN, "x", "%00", "é"])
async def test_an_unknown_or_malformed_client_id_is_not_found(admin, client_id):
    path = f"{CLIENTS}/{client_id}"
    await problem(await admin.send("GET", path), 404)
    await problem(await admin.send("DELETE", path), 404)
    await problem(await admin.send("POST", f"{path}/regenerate-secret"), 404)
    await problem(await admin.send("POST", f"{path}/revoke-tokens"), 404)


async def test_when_a_client_was_last_used_is_null_until_it_was(api, admin, clock, client):
    path = f"{CLIENTS}/{client['client_id']}"
    clock.advance(seconds=30)
    token = await obtain_token(api, client)
    assert (await admin.read(path))["last_used_at"] is None, "it is written off the path"
    await api.door.usage.flush()
    assert (await admin.read(path))["last_used_at"] == "2026-11-21T12:00:30.000Z"
    clock.advance(minutes=5)
    await token_admitted(api, token)
    await api.door.usage.flush()
    assert (await admin.read(path))["last_used_at"] == "2026-11-21T12:05:30.000Z"


async def test_a_regenerated_secret_is_answered_with_exactly_the_members_of_the_specification(
    admin, client
):
    path = f"{CLIENTS}/{client['client_id']}/regenerate-secret"
    response = await admin.send("POST", path)
    assert response.status == 200
    assert response.headers["Cache-Control"] == "no-store"
    answer = await response.json()
    assert set(answer) == {"client_id", "client_secret"}
    assert answer["client_id"] == client["client_id"]


async def test_regenerating_ends_the_old_secret_at_once(api, admin, client):
    await obtain_token(api, client)
    secret = await admin.regenerate(client["client_id"])
    assert await refused(api, client) == "The client ID or secret is not valid."
    await obtain_token(api, client | {"client_secret": secret})


async def test_tokens_live_on_when_the_secret_is_regenerated(api, admin, client):
    token = await obtain_token(api, client)
    await admin.regenerate(client["client_id"])
    assert await token_admitted(api, token)


async def test_no_secret_is_regenerated_for_a_disabled_client(admin, client):
    path = f"{CLIENTS}/{client['client_id']}"
    await admin.ask("DELETE", path)
    document = await problem(await admin.send("POST", f"{path}/regenerate-secret"), 409)
    assert document["detail"] == "The API client is disabled permanently; create a new client."


async def test_a_disabled_client_obtains_no_tokens(api, admin, client):
    await obtain_token(api, client)
    answer = await admin.ask("DELETE", f"{CLIENTS}/{client['client_id']}")
    assert answer["status"] == "disabled"
    assert answer == await admin.read(f"{CLIENTS}/{client['client_id']}")
    assert await refused(api, client) == "The API client is disabled."


async def test_that_a_client_is_disabled_is_told_to_its_holder_alone(api, admin, client):
    other = await admin.create_client()
    await admin.ask("DELETE", f"{CLIENTS}/{client['client_id']}")
    stranger = client | {"client_secret": other["client_secret"]}
    assert await refused(api, stranger) == "The client ID or secret is not valid."


async def test_tokens_of_a_disabled_client_live_until_exactly_their_expiry(
    api, admin, clock, client
):
    token = await obtain_token(api, client)
    await admin.ask("DELETE", f"{CLIENTS}/{client['client_id']}")
    clock.advance(minutes=30, microseconds=-1)
    assert await token_admitted(api, token)
    clock.advance(microseconds=1)
    assert not await token_admitted(api, token)


async def test_disabling_again_answers_the_same_and_is_recorded_once(admin, clock, client):
    first = await admin.ask("DELETE", f"{CLIENTS}/{client['client_id']}")
    clock.advance(minutes=1)
    assert await admin.ask("DELETE", f"{CLIENTS}/{client['client_id']}") == first
    assert len(await admin.audited(action="api-client.disable")) == 1


async def test_nothing_enables_a_disabled_client_again(api, admin, client):
    path = f"{CLIENTS}/{client['client_id']}"
    await admin.ask("DELETE", path)
    for endpoint in ENDPOINTS:
        if "{client_id}" in endpoint.path:
            await admin.send(endpoint.method, endpoint.path.format(**client))
    assert (await admin.read(path))["status"] == "disabled"
    assert await refused(api, client) == "The API client is disabled."


async def test_revoking_ends_every_token_at_once_and_new_ones_work(api, admin, clock, client):
    tokens = [await obtain_token(api, client) for _ in range(2)]
    assert [await token_admitted(api, token) for token in tokens] == [True, True]
    clock.advance(seconds=1)
    answer = await admin.ask("POST", f"{CLIENTS}/{client['client_id']}/revoke-tokens")
    assert answer == await admin.read(f"{CLIENTS}/{client['client_id']}")
    assert answer["status"] == "active"
    assert [await token_admitted(api, token) for token in tokens] == [False, False]
    clock.advance(milliseconds=1)
    assert await token_admitted(api, await obtain_token(api, client))


async def test_revoking_ends_the_tokens_of_a_disabled_client_too(api, admin, clock, client):
    token = await obtain_token(api, client)
    await admin.ask("DELETE", f"{CLIENTS}/{client['client_id']}")
    assert await token_admitted(api, token)
    await admin.ask("POST", f"{CLIENTS}/{client['client_id']}/revoke-tokens")
    assert not await token_admitted(api, token)


async def test_revoking_leaves_the_tokens_of_other_clients(api, admin, client):
    other = await obtain_token(api, await admin.create_client())
    await admin.ask("POST", f"{CLIENTS}/{client['client_id']}/revoke-tokens")
    assert await token_admitted(api, other)


@pytest.mark.parametrize("seconds", [None, 60])
async def test_a_token_lives_for_1800_seconds_or_what_the_settings_say(database, clock, seconds):
    settings = {} if seconds is None else {"access_token_seconds": seconds}
    async with open_api(database, clock, **settings) as api:
        client = await Admin(api, await api.admin()).create_client()
        answer = await (await request_token(api, client)).json()
        assert answer["expires_in"] == (seconds or 1800)
        clock.advance(seconds=(seconds or 1800), microseconds=-1)
        assert await token_admitted(api, answer["access_token"])
        clock.advance(microseconds=1)
        assert not await token_admitted(api, answer["access_token"])


async def test_a_secret_and_a_client_id_are_no_api_key(api, client):
    assert not await admitted(api, client["client_secret"])
    assert not await admitted(api, client["client_id"])


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_what_is_done_to_a_client_acts_at_once_on_every_node(nodes, clock):
    first, second = nodes
    admin = Admin(first, await first.admin())
    client = await admin.create_client()
    path = f"{CLIENTS}/{client['client_id']}"
    token = await obtain_token(second, client)
    assert await token_admitted(second, token)
    client |= {"client_secret": await admin.regenerate(client["client_id"])}
    await obtain_token(second, client)
    clock.advance(seconds=1)
    await admin.ask("POST", f"{path}/revoke-tokens")
    assert not await token_admitted(second, token)
    await admin.ask("DELETE", path)
    assert await refused(second, client) == "The API client is disabled."
