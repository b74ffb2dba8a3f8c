"""Time limits of tasks end as those of `asyncio.timeout` do."""

from __future__ import annotations

import asyncio

import pytest

from tocsin.time_limits import TimeLimits

SOON, NEVER = 0.01, 3_600


async def wait_within(limits: TimeLimits, seconds: float) -> None:
    with limits.limit(seconds):
        await asyncio.Event().wait()


async def test_a_task_that_takes_longer_gets_a_timeout():
    with pytest.raises(TimeoutError):
        await wait_within(TimeLimits(), SOON)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_task_that_ends_in_time_is_left_alone():
    limits = TimeLimits()
    with limits.limit(SOON):
        pass
    await asyncio.sleep(2 * SOON)


async def test_each_task_has_its_own_limit():
    limits = TimeLimits()
    endless, *others = [
        asyncio.create_task(wait_within(limits, each)) for each in (NEVER, SOON, 2 * SOON)
    ]
    ended = await asyncio.gather(*others, return_exceptions=True)
    assert [type(error) for error in ended] == [TimeoutError, TimeoutError]
    assert not endless.done()
    endless.cancel()
    with pytest.raises(asyncio.CancelledError):
        await endless


async def test_of_nested_limits_the_one_that_ends_is_reported():
    limits = TimeLimits()
    with limits.limit(NEVER), pytest.raises(TimeoutError):
        await wait_within(limits, SOON)
    with pytest.raises(TimeoutError), limits.limit(SOON):
        await wait_within(limits, NEVER)


async def test_a_cancelled_task_gets_no_timeout():
    task = asyncio.create_task(wait_within(TimeLimits(), NEVER))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_error_of_the_task_passes():
    with pytest.raises(KeyError), TimeLimits().limit(NEVER):
        raise KeyError
