"""Admins by an OpenID Connect issuer, from its tokens to what they may do here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from api_callers import AUDIT, INCIDENTS, KEYS, Admin
from api_server import Api, open_api, problem
from oidc_issuer import Issuer, ed25519_key, rsa_key

AUDIENCE = "tocsin-admins"
SUBJECT = "auth0|5f7c8ec7c33c6c004bbafe82"

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    issuer = Issuer()
    issuer.keys = [rsa_key()]
    await issuer.start()
    yield issuer
    await issuer.stop()


@asynccontextmanager
async def open_for(issuer: Issuer, database, clock, **settings: object) -> AsyncIterator[Api]:
    named = {"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE}
    async with open_api(database, clock, **named, **settings) as api:
        yield api


@pytest.fixture
async def api(issuer, database, clock) -> AsyncIterator[Api]:
    async with open_for(issuer, database, clock) as api:
        yield api


@pytest.fixture
def claims(issuer, clock) -> dict[str, object]:
    now = int(clock.now().timestamp())
    return {
        "iss": issuer.url,
        "aud": AUDIENCE,
        "sub": SUBJECT,
        "iat": now,
        "exp": now + 300,
        "roles": ["auditor", "admin"],
    }


def bearer(claims: dict[str, object], key=None) -> dict[str, str]:
    return {"Authorization": f"Bearer {(key or rsa_key()).sign(claims)}"}


async def get(api, headers, path=KEYS):
    return await api.client.get(path, headers=headers)


async def test_who_has_the_role_is_an_admin_and_known_by_the_subject(api, claims):
    admin = Admin(api, bearer(claims))
    key = await admin.create_key()
    assert (await admin.read(f"{KEYS}/{key['key_id']}"))["created_by"] == SUBJECT
    [entry] = await admin.audited()
    assert entry["actor"] == f"oidc:{SUBJECT}"
    [found] = (await admin.read(AUDIT, actor=f"oidc:{SUBJECT}"))["entries"]
    assert found == entry


async def test_the_issuer_is_asked_once_for_many_requests(api, issuer, claims):
    for _ in range(5):
        assert (await get(api, bearer(claims))).status == 200
    assert issuer.fetches == {"discovery": 1, "keys": 1}


@pytest.mark.parametrize("roles", [["auditor"], [], None, "administrator", {"admin": True}])
async def test_who_has_not_the_role_is_known_and_no_admin(api, claims, roles):
    response = await get(api, bearer(claims | {"roles": roles}))
    assert "admin role" in (await problem(response, 403))["detail"]


async def test_claim_and_role_are_settings(issuer, database, clock, claims):
    wanted = {"oidc_role_claim": "realm_access.roles", "oidc_role": "tocsin"}
    async with open_for(issuer, database, clock, **wanted) as api:
        await problem(await get(api, bearer(claims)), 403)
        granted = claims | {"realm_access": {"roles": ["tocsin"]}}
        assert (await get(api, bearer(granted))).status == 200


async def test_an_admin_carries_no_scope(api, claims):
    document = await problem(await get(api, bearer(claims), INCIDENTS), 403)
    assert document["required_scope"] == "incidents:read"


async def test_that_a_token_expired_is_said(api, claims, clock):
    assert (await get(api, bearer(claims))).status == 200
    clock.advance(seconds=300)
    response = await get(api, bearer(claims))
    document = await problem(response, 401)
    assert document["detail"] == "The bearer token has expired."
    assert 'error="invalid_token"' in response.headers["WWW-Authenticate"]


FORGED = {
    "another audience": {"aud": "another-service"},
    "no subject": {"sub": None},
    "a subject on two lines": {"sub": "ana\nadmin:ben"},
    "no expiry": {"exp": None},
    "from the future": {"iat": 4_000_000_000},
    "another issuer": {"iss": "https://evil.example"},
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
async def test_a_token_that_does_not_hold_is_not_valid(api, claims, change):
    changed = {name: claim for name, claim in (claims | change).items() if claim is not None}
    document = await problem(await get(api, bearer(changed)), 401)
    assert document["detail"] == "The bearer token is not valid."


async def test_a_token_by_another_key_is_not_valid(api, issuer, claims):
    document = await problem(await get(api, bearer(claims, ed25519_key("rsa"))), 401)
    assert document["detail"] == "The bearer token is not valid."


async def test_without_the_issuers_keys_nobody_is_refused_for_good(api, issuer, claims):
    await issuer.stop()
    response = await get(api, bearer(claims))
    await problem(response, 503)
    assert response.headers["Retry-After"].isdigit()
    assert issuer.url not in await response.text()
    assert (await get(api, await api.admin())).status == 200
    await issuer.start()
    api.services.clock.advance(seconds=int(response.headers["Retry-After"]))
    assert (await get(api, bearer(claims))).status == 200


async def test_once_known_the_keys_outlast_the_issuer(api, issuer, claims):
    assert (await get(api, bearer(claims))).status == 200
    await issuer.stop()
    assert (await get(api, bearer(claims))).status == 200
    await issuer.start()


async def test_a_token_of_a_new_key_is_not_refused_while_the_issuer_is_away(
    api, issuer, claims, clock
):
    assert (await get(api, bearer(claims))).status == 200
    await issuer.stop()
    issuer.keys = [new := ed25519_key("new")]
    for _ in range(3):
        response = await get(api, bearer(claims, new))
        await problem(response, 503)
        assert response.headers["Retry-After"] == "10"
        clock.advance(seconds=9)
    await issuer.start()
    clock.advance(seconds=10)
    assert (await get(api, bearer(claims, new))).status == 200


async def test_our_own_admins_are_admitted_beside_the_issuers(api, claims):
    for headers in (await api.admin(), bearer(claims)):
        assert (await get(api, headers)).status == 200


async def test_failures_of_an_address_keep_its_tokens_from_being_tried(
    issuer, database, clock, claims
):
    async with open_for(issuer, database, clock, auth_failure_limit=1) as api:
        await problem(await get(api, {"X-API-Key": "malformed"}), 401)
        response = await get(api, bearer(claims))
        await problem(response, 429)
        assert issuer.fetches == {}
        clock.advance(seconds=int(response.headers["Retry-After"]))
        assert (await get(api, bearer(claims))).status == 200
