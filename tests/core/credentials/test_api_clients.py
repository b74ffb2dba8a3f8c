"""API clients as they are stored."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tocsin.credentials import (
    ApiClient,
    NoSuchRecordError,
    NotActiveError,
    Scope,
    create_api_client,
    disable_api_client,
    load_api_client,
    regenerate_secret,
    revoke_tokens,
)

UNKNOWN = "cl_" + "x" * 16


def make(clock) -> ApiClient:
    return ApiClient(
        id="1",
        client_id="cl_" + "c" * 16,
        name="soar",
        description="for the night shift",
        scopes=(Scope.SEARCH_READ, Scope.INCIDENTS_READ),
        secret_hash="hash",
        created_by="ana",
        created_at=clock.now(),
        updated_at=clock.now(),
    )


@pytest.fixture
async def client(database, clock) -> ApiClient:
    """A client as it is stored, a minute ago."""
    made = make(clock)
    await database.write(create_api_client, made)
    clock.advance(minutes=1)
    return replace(made, scopes=("incidents:read", "search:read"))


async def test_a_client_comes_back_with_its_scopes_in_order(database, client):
    assert await database.read(load_api_client, client.client_id) == client


async def test_an_unknown_client_is_none(database):
    assert await database.read(load_api_client, UNKNOWN) is None


async def test_a_client_is_active_until_it_is_disabled_and_never_again(database, clock, client):
    assert client.status == "active"
    disabled, changed = await database.write(disable_api_client, client.client_id, clock.now())
    assert changed
    assert disabled == replace(client, disabled_at=clock.now(), updated_at=clock.now())
    assert disabled.status == "disabled"
    clock.advance(minutes=1)
    again = await database.write(disable_api_client, client.client_id, clock.now())
    assert again == (disabled, False)


async def test_a_new_secret_replaces_the_old_and_nothing_else(database, clock, client):
    changed = await database.write(regenerate_secret, client.client_id, "new", clock.now())
    assert changed == replace(client, secret_hash="new", updated_at=clock.now())
    assert await database.read(load_api_client, client.client_id) == changed


async def test_a_disabled_client_gets_no_new_secret(database, clock, client):
    disabled, _ = await database.write(disable_api_client, client.client_id, clock.now())
    with pytest.raises(NotActiveError) as error:
        await database.write(regenerate_secret, client.client_id, "new", clock.now())
    assert error.value.status == "disabled"
    assert await database.read(load_api_client, client.client_id) == disabled


async def test_revoking_remembers_when_even_for_a_disabled_client(database, clock, client):
    await database.write(disable_api_client, client.client_id, clock.now())
    clock.advance(minutes=1)
    revoked = await database.write(revoke_tokens, client.client_id, clock.now())
    assert revoked.token_generation == 1
    assert revoked.updated_at == clock.now()
    assert revoked.disabled_at == clock.now() - timedelta(minutes=1)
    assert await database.read(load_api_client, client.client_id) == revoked


async def test_what_is_unknown_cannot_be_changed(database, clock):
    now = clock.now()
    for change in (
        lambda c: regenerate_secret(c, UNKNOWN, "new", now),
        lambda c: revoke_tokens(c, UNKNOWN, now),
        lambda c: disable_api_client(c, UNKNOWN, now),
    ):
        with pytest.raises(NoSuchRecordError):
            await database.write(change)
