"""Argon2id runs once per presented value, and a memo never overrules what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from threading import Thread

import pytest

from tocsin.credentials import Hasher
from tocsin.credentials.hashing import VerificationCache

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


def test_a_memory_fades(clock):
    memo = VerificationCache(clock, lifetime=timedelta(minutes=15))
    memo.add(b"a", "stored")
    clock.advance(minutes=14)
    assert memo.recall(b"a") == "stored"
    clock.advance(minutes=1)
    assert memo.recall(b"a") is None


def test_the_least_recently_used_is_forgotten_first(clock):
    memo = VerificationCache(clock, size=2)
    memo.add(b"a", "stored")
    memo.add(b"b", "stored")
    memo.recall(b"a")
    memo.add(b"c", "stored")
    assert [memo.recall(name) for name in (b"a", b"b", b"c")] == ["stored", None, "stored"]


def test_parts_cannot_be_shifted_between_identifier_and_secret(clock):
    memo = VerificationCache(clock)
    assert memo.digest("ab", "c") != memo.digest("a", "bc")
    assert memo.digest("a", "1:b") != memo.digest("a1:", "b")


def test_two_processes_know_a_value_by_different_names(clock):
    assert VerificationCache(clock).digest(KEY, SECRET) != VerificationCache(clock).digest(
        KEY, SECRET
    )


def test_many_threads_may_ask_at_once(clock):
    memo = VerificationCache(clock, size=10)

    def work() -> None:
        for n in range(5000):
            memo.add(bytes([n % 50]), "stored")
            memo.recall(bytes([n % 7]))

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(memo._entries) == 10
