"""API keys as they are stored."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tocsin.credentials import ApiKey, Scope, create_api_key, load_api_key


def make(clock) -> ApiKey:
    return ApiKey(
        id="1",
        key_id="k" * 16,
        prefix="sk_live_",
        name="playbooks",
        description="for the night shift",
        scopes=(Scope.SEARCH_READ, Scope.INCIDENTS_READ),
        secret_hash="hash",
        created_by="ana",
        created_at=clock.now(),
        updated_at=clock.now(),
        expires_at=clock.now() + timedelta(days=1),
    )


async def test_a_key_comes_back_with_its_scopes_in_order(database, clock):
    key = make(clock)
    await database.write(create_api_key, key)
    expected = replace(key, scopes=("incidents:read", "search:read"))
    assert await database.read(load_api_key, key.key_id) == expected


async def test_an_unknown_key_is_none(database):
    assert await database.read(load_api_key, "k" * 16) is None


def test_a_key_is_expired_from_the_moment_on_that_it_names(clock):
    key = make(clock)
    assert key.status(clock.now()) == "active"
    assert key.status(key.expires_at - timedelta(microseconds=1)) == "active"
    assert key.status(key.expires_at) == "expired"
