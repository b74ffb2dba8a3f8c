"""Shared results: computed once for all, and never older than allowed."""

from __future__ import annotations

import asyncio

import pytest

from tocsin.web.shared_results import MAX_AGE, SharedResults


class Computation:
    """Counts how often it was done, and fails where it shall."""

    def __init__(self) -> None:
        self.done = 0
        self.error: Exception | None = None

    async def __call__(self) -> int:
        self.done += 1
        number = self.done
        await asyncio.sleep(0.01)
        if self.error is not None:
            raise self.error
        return number


async def test_those_who_ask_at_once_share_one_computation():
    results, compute = SharedResults(), Computation()
    first = asyncio.create_task(results.load("account", compute))
    rest = [asyncio.create_task(results.load("account", compute)) for _ in range(20)]
    await asyncio.sleep(0)
    first.cancel()  # the others still get it
    assert await asyncio.gather(*rest) == [1] * 20


async def test_a_result_is_used_until_it_is_too_old_or_something_changed():
    now = 100.0
    results, compute = SharedResults(lambda: now), Computation()
    assert await results.load("account", compute) == 1
    now += MAX_AGE * 0.9
    assert await results.load("account", compute) == 1
    now += MAX_AGE * 0.1
    assert await results.load("account", compute) == 2
    assert await results.load("account", compute, MAX_AGE * 9) == 2
    now += MAX_AGE * 8
    assert await results.load("account", compute, MAX_AGE * 9) == 2
    results.expire()
    assert await results.load("account", compute) == 3


async def test_a_failure_is_not_kept():
    results, compute = SharedResults(), Computation()
    compute.error = ConnectionError("away")
    with pytest.raises(ConnectionError):
        await results.load("account", compute)
    compute.error = None
    assert await results.load("account", compute) == 2
