"""The monitor of the event loop."""

import asyncio
import threading
import time

import pytest
import uvloop

from tocsin.loop_monitor import LoopMonitor, Stall

on_both_loops = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])


def watch(loop, hold):
    async def run():
        stalls = []
        with LoopMonitor(stalls.append, threshold=0.2, interval=0.02):
            await asyncio.sleep(0.05)
            await hold()
            await asyncio.sleep(0.05)
        return stalls

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(run())


async def sleep_in_the_loop():
    time.sleep(0.4)  # noqa: ASYNC251


@on_both_loops
def test_a_blocking_call_is_reported_with_its_stack(loop):
    [stall] = watch(loop, sleep_in_the_loop)
    assert 0.2 <= stall.seconds < 1
    [(stack, _)] = stall.stacks
    assert stack[0].function == "sleep_in_the_loop"
    assert stack[0].file == __file__
    assert stack[0].line == sleep_in_the_loop.__code__.co_firstlineno + 1


@on_both_loops
def test_many_short_callbacks_are_no_stall(loop):
    async def work():
        for _ in range(40):
            time.sleep(0.01)  # noqa: ASYNC251
            await asyncio.sleep(0)

    assert watch(loop, work) == []


@on_both_loops
def test_a_blocking_call_in_a_thread_is_no_stall(loop):
    assert watch(loop, lambda: asyncio.to_thread(time.sleep, 0.4)) == []


async def test_a_long_stall_is_reported_while_it_lasts(monkeypatch):
    monkeypatch.setattr("tocsin.loop_monitor._STILL_HELD", 0.3)
    first = threading.Event()

    async def hold():
        assert first.wait(10)

    stalls = []

    def report(stall):
        stalls.append(stall.is_over)
        first.set()

    with LoopMonitor(report, threshold=0.1, interval=0.02):
        await asyncio.sleep(0.05)
        await hold()
        await asyncio.sleep(0.05)
    assert stalls == [False, True]


@on_both_loops
def test_each_culprit_answers_for_its_own_seconds(loop):
    def first():
        time.sleep(0.3)

    def second():
        time.sleep(0.6)

    async def hold():
        first()
        second()

    [stall] = watch(loop, hold)
    found = stall.attribute(lambda stack: stack[0].function.rpartition(".")[2])
    assert found["first"][0] < found["second"][0]
    assert found["second"][0] < 0.9


def test_a_stall_without_stacks_has_no_length():
    assert Stall((), 0).seconds == 0
