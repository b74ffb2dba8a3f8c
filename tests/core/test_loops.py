"""Background loops: they survive failures, and end on cancellation."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from datetime import timedelta

import pytest
import structlog

from tocsin.clock import SystemClock
from tocsin.logs import configure_logs
from tocsin.loops import SILENCE, Heartbeats, beat, run_forever, wait_for_event
from tocsin.store import LeaseLost


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (ValueError("a bug"), "error"),
        (asyncio.CancelledError(), "error"),
        (ConnectionRefusedError("away"), "warning"),
        (LeaseLost("taken over"), "warning"),
    ],
)
async def test_a_step_that_fails_is_said_and_tried_again(clock, error, level):
    script = [error, None, error]
    ended = asyncio.Event()

    async def step() -> None:
        if not script:
            ended.set()
            await asyncio.Event().wait()
        elif error := script.pop(0):
            raise error

    with structlog.testing.capture_logs() as logs:
        loop = asyncio.create_task(run_forever(step, clock, "stepping"))
        async with asyncio.timeout(10):
            await ended.wait()
        loop.cancel()
        await asyncio.wait([loop])
    assert loop.cancelled()
    assert [line["log_level"] for line in logs] == [level, level]


async def test_a_step_that_swallows_its_cancellation_is_the_last_one(clock):
    steps = []

    async def step() -> None:
        steps.append(1)
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    loop = asyncio.create_task(run_forever(step, clock, "stepping"))
    await asyncio.sleep(0)
    loop.cancel()
    await asyncio.wait([loop], timeout=10)
    assert (loop.cancelled(), steps) == (True, [1])


def test_a_log_line_is_json_whatever_it_holds(capsys):
    before = structlog.get_config()
    try:
        configure_logs("json")
        structlog.get_logger().warning("odd", path="caf\udce9", thing=object())
    finally:
        structlog.configure(**before)
    line = json.loads(capsys.readouterr().err)
    assert (line["event"], line["level"], line["path"]) == ("odd", "warning", "caf\udce9")


async def test_a_loop_that_completes_no_step_is_stalled(clock):
    now = 0.0
    heartbeats = Heartbeats(lambda: now)
    heartbeats.follow()
    goes_on, is_done = asyncio.Event(), asyncio.Event()

    async def step() -> None:
        await goes_on.wait()
        goes_on.clear()
        is_done.set()

    loop = asyncio.create_task(run_forever(step, clock, "claiming", destination="soc"))
    await asyncio.sleep(0)
    now = 31.0
    assert heartbeats.find_stalled() == ["claiming soc"]
    goes_on.set()
    await is_done.wait()
    await asyncio.sleep(0)
    assert heartbeats.find_stalled() == []
    now = 62.5
    assert heartbeats.find_stalled() == ["claiming soc"]
    loop.cancel()
    await asyncio.wait([loop])
    assert heartbeats.find_stalled() == []


async def test_loops_of_a_process_that_was_frozen_are_not_stalled():
    now = 0
    heartbeats = Heartbeats(lambda: now)
    heartbeats.add("routing", SILENCE)
    with structlog.testing.capture_logs() as logs:
        for moment in (5, 10, 200, 210, 220, 229):
            now = moment
            heartbeats.tick()
            assert heartbeats.find_stalled() == []
    [frozen] = logs
    assert (frozen["event"], frozen["seconds"]) == ("node was frozen", 190)
    now = 231
    assert heartbeats.find_stalled() == ["routing"]


async def test_a_loop_that_only_fails_is_stalled(clock):
    now = 0.0
    heartbeats = Heartbeats(lambda: now)
    heartbeats.follow()
    failures = [ConnectionRefusedError("away"), ConnectionRefusedError("away")]
    has_failed = asyncio.Event()

    async def step() -> None:
        nonlocal now
        now += 16
        if failures:
            raise failures.pop()
        has_failed.set()
        await asyncio.Event().wait()

    loop = asyncio.create_task(run_forever(step, clock, "routing"))
    await has_failed.wait()
    assert heartbeats.find_stalled() == ["routing"]
    loop.cancel()
    await asyncio.wait([loop])


async def test_a_failure_counts_no_longer_once_the_step_has_succeeded(clock, monkeypatch):
    """A loop with long pauses would otherwise be stalled until the next step."""
    now = 0.0
    heartbeats = Heartbeats(lambda: now)
    heartbeats.follow()
    script = [None, ConnectionRefusedError("away")]
    pause, pauses = timedelta(hours=1), asyncio.Event()

    async def sleep(duration: timedelta) -> None:
        if duration == pause:
            pauses.set()
            await asyncio.Event().wait()

    async def step() -> None:
        if error := script.pop():
            raise error

    monkeypatch.setattr(clock, "sleep", sleep)
    loop = asyncio.create_task(run_forever(step, clock, "retention", pause=pause))
    async with asyncio.timeout(10):
        await pauses.wait()
    now = 3_629.0
    assert heartbeats.find_stalled() == []
    now = 3_631.0
    assert heartbeats.find_stalled() == ["retention"]
    loop.cancel()
    await asyncio.wait([loop])


async def test_a_long_step_beats_in_between(clock):
    now = 0.0
    heartbeats = Heartbeats(lambda: now)
    heartbeats.follow()
    has_beaten = asyncio.Event()

    async def step() -> None:
        nonlocal now
        now += 25
        beat()
        now += 25
        has_beaten.set()
        await asyncio.Event().wait()

    loop = asyncio.create_task(run_forever(step, clock, "search indexer"))
    await has_beaten.wait()
    assert heartbeats.find_stalled() == []
    loop.cancel()
    await asyncio.wait([loop])


async def test_a_cancellation_ends_a_wait_also_as_its_event_is_set():
    event = asyncio.Event()
    waiting = asyncio.create_task(wait_for_event(event, 10))
    await asyncio.sleep(0)
    event.set()
    await asyncio.sleep(0)
    is_cancelled = waiting.cancel()  # False if it ended before
    await asyncio.wait({waiting})
    assert waiting.cancelled() is is_cancelled


@pytest.mark.parametrize(
    "wait",
    [lambda: wait_for_event(asyncio.Event(), 60), lambda: SystemClock().sleep(timedelta(hours=1))],
    ids=["event", "sleep"],
)
async def test_a_task_that_swallowed_its_cancellation_waits_no_more(wait):
    async def swallow() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await wait()

    working = asyncio.create_task(swallow())
    await asyncio.sleep(0)
    working.cancel()
    await asyncio.wait({working}, timeout=10)
    assert working.cancelled()


async def test_a_wait_for_an_event_has_an_end():
    assert not await wait_for_event(asyncio.Event(), 0.01)
