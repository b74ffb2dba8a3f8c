"""Creating API keys."""

from __future__ import annotations

import pytest

from running_api import problem
from tocsin.credentials import load_api_key, parse
from tocsin.web.routes.api_keys import CreatedApiKey

PATH = "/api/admin/api-keys"
GOOD = {"name": "playbooks", "scopes": ["incidents:read"]}


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
    assert parse(created["api_key"]).secret not in repr(key)


async def test_a_key_lives_for_a_year_where_nothing_else_is_said(api, headers):
    created = await (await api.client.post(PATH, json=GOOD, headers=headers)).json()
    assert created["expires_at"] == "2027-11-21T12:00:00.000Z"


async def test_an_invalid_scope_is_named_beside_the_valid_ones(api, headers):
    body = GOOD | {"scopes": ["incidents:write", "incidents:read", "all"]}
    document = await problem(await api.client.post(PATH, json=body, headers=headers), 400)
    assert document["detail"] == (
        "There is no scope 'all', 'incidents:write'; valid are graph:read, incidents:read, "
        "investigations:read, investigations:write, search:read."
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
