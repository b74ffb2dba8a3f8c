"""Argon2id runs once per presented value, and a cached match never overrules what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tocsin.credentials import Hasher

KEY, SECRET = "k" * 16, "s" * 43


@pytest.fixture
def hasher(clock) -> Iterator[Hasher]:
    hasher = Hasher(clock)
    yield hasher
    hasher.close()


async def test_a_hash_is_argon2id_with_its_own_salt(hasher):
    first, second = await hasher.hash(SECRET), await hasher.hash(SECRET)
    assert first.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert first != second


async def test_the_right_secret_matches_and_a_wrong_one_does_not(hasher):
    stored = await hasher.hash(SECRET)
    assert await hasher.verify(KEY, SECRET, stored)
    assert not await hasher.verify(KEY, "x" * 43, stored)


async def test_a_broken_hash_matches_nothing(hasher):
    assert not await hasher.verify(KEY, SECRET, "not a hash")


async def test_a_success_is_remembered_for_this_key_secret_and_hash(hasher):
    stored, other = await hasher.hash(SECRET), await hasher.hash(SECRET)
    await hasher.verify(KEY, SECRET, stored)
    assert hasher.recall("x" * 16, SECRET) is None
    assert hasher.recall(KEY, "x" * 43) is None
    assert hasher.recall(KEY, SECRET) == stored
    runs = hasher.runs
    await hasher.verify(KEY, SECRET, other)
    assert hasher.runs == runs + 1


async def test_a_mismatch_that_is_repeated_costs_one_run(hasher):
    stored, other = await hasher.hash(SECRET), await hasher.hash("x" * 43)
    for _ in range(2):
        assert not await hasher.verify(KEY, "x" * 43, stored)
        assert hasher.runs == 3
    assert await hasher.verify(KEY, "x" * 43, other)


async def test_concurrent_first_use_costs_one_run(hasher):
    stored = await hasher.hash(SECRET)
    results = await asyncio.gather(*(hasher.verify(KEY, SECRET, stored) for _ in range(50)))
    assert all(results)
    assert hasher.runs == 2


async def test_whoever_goes_away_takes_nothing_from_the_others(hasher):
    stored = await hasher.hash(SECRET)
    first = asyncio.ensure_future(hasher.verify(KEY, SECRET, stored))
    second = asyncio.ensure_future(hasher.verify(KEY, SECRET, stored))
    await asyncio.sleep(0)
    first.cancel()
    assert await second
    assert hasher.runs == 2
