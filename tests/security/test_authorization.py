"""Every operation of the API by every wrong credential: none is carried out."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Connection, func, select

from api_callers import Admin
from api_server import PUSHED, open_api
from console import Person
from tocsin.credentials import (
    Scope,
    generate_client_secret,
    generate_key,
    generate_value,
    parse_key,
)
from tocsin.store.tables import metadata
from tocsin.web.context import AccessRole
from tocsin.web.endpoints import ENDPOINTS

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

BUSY = {"audit", "sequences", "signing_keys", "rate_limits"}
"""Tables that change by themselves."""


def operations(*roles: object) -> Iterator[tuple[str, str]]:
    """Yield method and path of the operations whose access is of one of these kinds."""
    for endpoint in ENDPOINTS:
        if isinstance(endpoint.access, Scope) or endpoint.access in roles:
            path = re.sub(r"{\w+}", "1", endpoint.path.replace("{provider}", PUSHED))
            yield endpoint.method, path
            if endpoint.method == "GET":
                yield "HEAD", path


GUARDED = sorted(set(operations(AccessRole.ADMIN)))


async def nothing(_api) -> dict:
    return {}


async def malformed_key(_api) -> dict:
    return {"X-API-Key": "sk_live_malformed"}


async def unknown_key(_api) -> dict:
    return {"X-API-Key": generate_key()[1]}


async def wrong_secret(api) -> dict:
    value = parse_key(await api.key(*Scope))
    return {"X-API-Key": generate_value(value.prefix, value.identifier)[1]}


async def other_prefix(api) -> dict:
    key = await api.key(*Scope)
    return {"X-API-Key": key.replace("sk_live_", "sk_test_")}


async def expired_key(api) -> dict:
    return {"X-API-Key": await api.key(*Scope, days=0)}


async def disabled_key(api) -> dict:
    key = await api.key(*Scope)
    path = f"/api/admin/api-keys/{parse_key(key).identifier}"
    response = await Admin(api, await api.admin()).send("DELETE", path)
    assert response.ok, await response.text()
    return {"X-API-Key": key}


async def key_as_token(api) -> dict:
    return {"Authorization": f"Bearer {await api.key(*Scope)}"}


async def key_as_password(api) -> dict:
    password = b64encode(f":{await api.key(*Scope)}".encode()).decode()
    return {"Authorization": f"Basic {password}"}


async def token_as_key(api) -> dict:
    return {"X-API-Key": await api.token()}


async def expired_admin_token(api) -> dict:
    token = await api.token(seconds=1)
    api.services.clock.advance(hours=1)
    return {"Authorization": f"Bearer {token}"}


async def forged_admin_token(api) -> dict:
    """Return a token of ours, signed again by a key that is not ours."""
    ours = await api.token()
    header = jwt.get_unverified_header(ours)
    key = Ed25519PrivateKey.generate()
    forged = jwt.encode(unverified(ours), key, algorithm="EdDSA", headers=header)
    return {"Authorization": f"Bearer {forged}"}


def unverified(token: str) -> dict:
    return jwt.decode(token, options={"verify_signature": False})


async def unsigned_token(api) -> dict:
    claims = unverified(await api.token())
    return {"Authorization": f"Bearer {jwt.encode(claims, None, algorithm='none')}"}


async def admin_token_of_revoked_keys(api) -> dict:
    token = await api.token()
    await api.services.database.write(api.services.admins.revoke_all)
    return {"Authorization": f"Bearer {token}"}


async def changed_access_token(api) -> dict:
    token = await api.access_token(*Scope)
    return {"Authorization": f"Bearer {token[:-8]}AAAAAAAA"}


async def session_cookie(api) -> dict:
    person = Person(api)
    await person.sign_in()
    return {"Cookie": person.cookie}


async def two_credentials(api) -> dict:
    return {"X-API-Key": await api.key(*Scope), **await api.admin()}


ORDINARY = (nothing, unknown_key, wrong_secret, disabled_key, forged_admin_token, session_cookie)
FURTHER = (
    malformed_key,
    other_prefix,
    expired_key,
    key_as_token,
    key_as_password,
    token_as_key,
    expired_admin_token,
    unsigned_token,
    admin_token_of_revoked_keys,
    changed_access_token,
    two_credentials,
)
"""Credentials that ordinary runs try on single operations, in tests of the web layer."""
WRONG = (*ORDINARY, *(pytest.param(credential, marks=pytest.mark.full) for credential in FURTHER))


def count_rows(connection: Connection) -> dict[str, int]:
    tables = [table for table in metadata.sorted_tables if table.name not in BUSY]
    return {
        table.name: connection.scalar(select(func.count()).select_from(table)) or 0
        for table in tables
    }


@on_sqlite
@pytest.mark.parametrize("credential", WRONG, ids=lambda credential: credential.__name__)
async def test_no_operation_is_carried_out_for_a_wrong_credential(api, credential, record_property):
    headers = await credential(api)
    before = await api.services.database.read(count_rows)
    admitted = []
    for method, path in GUARDED:
        response = await api.client.request(method, path, headers=headers, json={})
        if response.status not in ({400} if credential is two_credentials else {401, 429}):
            admitted.append((method, path, response.status))
    record_property("cases", len(GUARDED))
    assert admitted == []
    assert await api.services.database.read(count_rows) == before


def test_every_operation_is_public_or_guarded(record_property):
    public = {endpoint.path for endpoint in ENDPOINTS if endpoint.access is AccessRole.PUBLIC}
    record_property("cases", len(ENDPOINTS))
    assert public == {
        "/healthz",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/docs",
        "/.well-known/jwks.json",
        "/.well-known/oauth-authorization-server",
    }


def change_end(text: str) -> str:
    """Return the text with another last character, whatever that was."""
    return text[:-1] + ("B" if text.endswith("A") else "A")


@on_sqlite
@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/introspect", "/oauth/revoke"])
async def test_no_client_endpoint_serves_a_wrong_secret(api, path, record_property):
    client = await api.client_credentials(*Scope)
    forms = (
        {},
        {"client_id": client["client_id"]},
        client | {"client_secret": change_end(client["client_secret"])},
        client | {"client_secret": generate_client_secret()},
        client | {"client_id": change_end(client["client_id"])},
        {"client_id": "ana", "client_secret": await api.token()},
    )
    form = {"grant_type": "client_credentials", "token": await api.token()}
    for wrong in forms:
        response = await api.client.post(path, data=form | wrong)
        assert response.status in {400, 401}, (wrong, await response.text())
        assert "access_token" not in await response.text()
    record_property("cases", len(forms))


@on_sqlite
async def test_a_push_takes_no_credential_of_the_api(api, record_property):
    wrong = [await credential(api) for credential in (*ORDINARY, *FURTHER[:6])]
    wrong += [await api.analyst(), await api.admin()]
    for headers in wrong:
        response = await api.client.post(f"/api/push/{PUSHED}", json={}, headers=headers)
        assert response.status == 401
    record_property("cases", len(wrong))


@on_sqlite
async def test_a_credential_in_the_url_is_not_read(database, clock, record_property):
    async with open_api(database, clock) as api:
        key, token = await api.key(*Scope), await api.token()
        for query in ({"api_key": key}, {"X-API-Key": key}, {"access_token": token}):
            response = await api.client.get("/api/v1/incidents", params=query)
            assert response.status == 401
        record_property("cases", 3)
