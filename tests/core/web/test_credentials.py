"""Who is let in, who is not, and what that costs."""

from __future__ import annotations

import asyncio

import pytest
from argon2 import PasswordHasher
from sqlalchemy import delete, update

from api_server import problem
from incident_rows import add_incidents
from tocsin.credentials import Scope, generate_key
from tocsin.store.sqlite import _find_driver
from tocsin.store.tables import api_keys

INCIDENTS = "/api/v1/incidents"
KEYS = "/api/admin/api-keys"
_, UNKNOWN = generate_key()
OTHER_HASH = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash("another secret")


async def get(api, headers, path=INCIDENTS):
    return await api.client.get(path, headers=headers)


async def test_a_key_with_the_scope_is_let_in(api):
    assert (await get(api, await api.reader())).status == 200


async def test_a_missing_scope_is_named_in_the_words_of_the_specification(api):
    headers = {"X-API-Key": await api.key(Scope.SEARCH_READ, Scope.GRAPH_READ)}
    document = await problem(await get(api, headers), 403)
    assert document["detail"] == "API key does not have the required scope: incidents:read"
    assert document["required_scope"] == "incidents:read"
    assert document["type"] == "/problems/missing-scope"


async def test_without_a_credential_it_is_said_how_to_authenticate(api):
    response = await get(api, {})
    await problem(response, 401)
    assert response.headers["WWW-Authenticate"] == 'ApiKey realm="tocsin", Bearer realm="tocsin"'
    response = await api.client.post(KEYS, json={})
    await problem(response, 401)
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="tocsin"'


async def test_an_unknown_key_and_a_wrong_one_are_answered_alike_to_the_byte(api):
    known = await api.key(Scope.INCIDENTS_READ)
    _, text = generate_key()
    wrong = _with_secret_of(known, text)
    answers = []
    for key in (UNKNOWN, wrong):
        response = await get(api, {"X-API-Key": key, "X-Request-Id": "same"})
        await problem(response, 401)
        headers = {name: word for name, word in response.headers.items() if name != "Date"}
        answers.append((headers, await response.read()))
    assert answers[0] == answers[1]


def _with_secret_of(known: str, other: str) -> str:
    from tocsin.credentials.records import _checksum

    unchecked = known[:25] + other[25:68]
    return unchecked + _checksum(unchecked)


async def test_that_a_key_expired_is_told_to_its_holder_alone(api, clock):
    key = await api.key(Scope.INCIDENTS_READ, days=1)
    clock.advance(days=1)
    document = await problem(await get(api, {"X-API-Key": key}), 401)
    assert document["detail"] == "The API key expired at 2026-11-22T12:00:00.000Z."
    wrong = _with_secret_of(key, UNKNOWN)
    document = await problem(await get(api, {"X-API-Key": wrong}), 401)
    assert document["detail"] == "The API key is not valid."


async def test_expiry_acts_at_once_despite_the_memo(api, clock):
    headers = {"X-API-Key": await api.key(Scope.INCIDENTS_READ, days=1)}
    await get(api, headers)
    clock.advance(minutes=1)
    assert (await get(api, headers)).status == 200
    clock.advance(days=1)
    await problem(await get(api, headers), 401)


CHANGES = {
    "deleted": delete(api_keys),
    "hash changed": update(api_keys).values(secret_hash=OTHER_HASH),
    "expired": update(api_keys).values(expires_at=api_keys.c.created_at),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_change_of_the_record_acts_at_once_despite_the_memo(api, change):
    headers = await api.reader()
    assert (await get(api, headers)).status == 200
    await api.services.database.write(lambda connection: connection.execute(change) and None)
    await problem(await get(api, headers), 401)


async def test_a_thousand_requests_with_one_key_cost_one_argon2(api):
    headers = await api.reader()
    for _ in range(20):
        responses = await asyncio.gather(*(get(api, headers) for _ in range(50)))
        assert {response.status for response in responses} == {200}
    assert api.services.hasher.runs == 1


async def test_many_keys_at_once_cost_one_argon2_each(api):
    keys = [{"X-API-Key": await api.key(Scope.INCIDENTS_READ)} for _ in range(3)]
    responses = await asyncio.gather(*(get(api, headers) for headers in keys * 10))
    assert {response.status for response in responses} == {200}
    assert api.services.hasher.runs == 3


REFUSED_UNREAD = {
    "empty": {"X-API-Key": ""},
    "truncated": {"X-API-Key": UNKNOWN[:-1]},
    "wrong checksum": {"X-API-Key": UNKNOWN[:-6] + "000000"},
    "unicode": {"X-API-Key": "sk_live_ключ"},
    "5 kB": {"X-API-Key": "a" * 5_000},
    "bearer of a key": {"Authorization": f"Bearer {UNKNOWN}"},
    "bearer of nothing": {"Authorization": "Bearer"},
    "bearer of 5 kB": {"Authorization": "Bearer " + "a" * 5_000},
    "basic": {"Authorization": "Basic YTpi"},
}


@pytest.mark.parametrize("path", [INCIDENTS, KEYS])
@pytest.mark.parametrize("headers", REFUSED_UNREAD.values(), ids=REFUSED_UNREAD)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_what_is_malformed_costs_neither_argon2_nor_a_read(api, headers, path):
    with _statements(api) as statements:
        method = "POST" if path == KEYS else "GET"
        response = await api.client.request(method, path, headers=headers)
        await problem(response, 401)
    assert statements == []
    assert api.services.hasher.runs == 0


class _statements(list):  # noqa: N801 - used as a context manager
    """What is asked of the SQLite database meanwhile."""

    def __init__(self, api) -> None:
        super().__init__()
        self._driver = api.services.database._read(_find_driver)

    def __enter__(self):
        self._driver.set_trace_callback(self.append)
        return self

    def __exit__(self, *_error: object) -> None:
        self._driver.set_trace_callback(None)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_read_is_one_statement(api):
    await api.services.database.write(add_incidents)
    headers = await api.reader()
    for _ in range(2):  # verifies the key, then remembers the version of its row
        await get(api, headers, f"{INCIDENTS}/1")
    with _statements(api) as statements:
        await get(api, headers, f"{INCIDENTS}/1")
    [statement] = statements
    assert "FROM api_keys LEFT OUTER JOIN incident_documents" in statement


async def test_an_unknown_key_costs_no_argon2(api):
    await problem(await get(api, {"X-API-Key": UNKNOWN}), 401)
    assert api.services.hasher.runs == 0


async def test_a_header_of_ten_thousand_bytes_is_refused_before_it_is_read(api):
    response = await get(api, {"X-API-Key": "a" * 10_000})
    assert response.status == 431
    assert api.services.hasher.runs == 0


async def test_two_credentials_are_one_too_many(api):
    await problem(await get(api, {**await api.reader(), **await api.admin()}), 400)
    key = await api.key(Scope.INCIDENTS_READ)
    await problem(await get(api, [("X-API-Key", key), ("X-API-Key", key)]), 400)


async def test_a_key_in_the_query_is_no_credential(api):
    key = await api.key(Scope.INCIDENTS_READ)
    await problem(await get(api, {}, f"{INCIDENTS}?api_key={key}&X-API-Key={key}"), 401)


async def test_an_admin_token_carries_no_scope(api):
    document = await problem(await get(api, await api.admin()), 403)
    assert document["required_scope"] == "incidents:read"


async def test_a_key_is_no_admin_whatever_its_scopes(api):
    headers = {"X-API-Key": await api.key(*Scope)}
    await problem(await api.client.post(KEYS, json={}, headers=headers), 403)
    await problem(await api.client.post(KEYS, json={}, headers={"X-API-Key": UNKNOWN}), 401)


async def test_an_admin_token_that_is_not_valid_is_refused_as_rfc_6750_says(api, clock):
    headers = {"Authorization": f"Bearer {await api.token(minutes=1)}"}
    clock.advance(minutes=1)
    response = await api.client.post(KEYS, json={}, headers=headers)
    document = await problem(response, 401)
    assert document["detail"] == "The bearer token has expired."
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="tocsin", error="invalid_token"'
    forged = headers["Authorization"][:-6] + "AAAAAA"
    response = await api.client.post(KEYS, json={}, headers={"Authorization": forged})
    document = await problem(response, 401)
    assert document["detail"] == "The bearer token is not valid."


async def test_the_scheme_is_written_in_any_case(api):
    headers = {"Authorization": f"bearer {await api.token()}"}
    await problem(await api.client.post(KEYS, json={}, headers=headers), 422)


@pytest.mark.parametrize("path", [f"{INCIDENTS}?limit=x", f"{INCIDENTS}/x", f"{INCIDENTS}?x=1"])
async def test_whoever_is_not_let_in_learns_nothing_of_what_else_is_wrong(api, path):
    await problem(await get(api, {}, path), 401)
    await problem(await get(api, {"X-API-Key": UNKNOWN}, path), 401)
    headers = {"X-API-Key": await api.key(Scope.SEARCH_READ)}
    await problem(await get(api, headers, path), 403)


async def test_the_body_of_whoever_is_not_let_in_is_not_judged(api):
    response = await api.client.post(KEYS, data=b"{", headers={"Content-Type": "text/plain"})
    await problem(response, 401)
