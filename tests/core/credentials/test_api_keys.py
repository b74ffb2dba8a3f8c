"""API keys as they are stored."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select, text

from tocsin.credentials import ApiKey, Scope, create_api_key, load_api_key
from tocsin.store.tables import api_keys

UNVERSIONED = {"last_used_at", "search", "row_version"}
VERSIONED = [column.name for column in api_keys.columns if column.name not in UNVERSIONED]


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


@pytest.mark.parametrize("column", VERSIONED)
async def test_any_change_of_a_key_renews_the_version_of_its_row(database, clock, column):
    await database.write(create_api_key, make(clock))
    first = await database.read(lambda c: c.scalar(select(api_keys.c.row_version)))
    change = text(f"UPDATE api_keys SET {column} = {column}")  # as an administrator may write it
    await database.write(lambda c: c.execute(change).rowcount)
    assert await database.read(lambda c: c.scalar(select(api_keys.c.row_version))) not in (0, first)


async def test_the_use_of_a_key_leaves_the_version_of_its_row(database, clock):
    await database.write(create_api_key, make(clock))
    first = await database.read(lambda c: c.scalar(select(api_keys.c.row_version)))
    await database.write(lambda c: c.execute(text("UPDATE api_keys SET last_used_at = 1")).rowcount)
    assert await database.read(lambda c: c.scalar(select(api_keys.c.row_version))) == first != 0


def test_a_key_is_expired_from_the_moment_on_that_it_names(clock):
    key = make(clock)
    assert key.status(clock.now()) == "active"
    assert key.status(key.expires_at - timedelta(microseconds=1)) == "active"
    assert key.status(key.expires_at) == "expired"
