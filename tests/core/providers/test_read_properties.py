"""Whatever changes, breaks and stops, and in whatever order: it ends with the truth."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from full_run import scale_examples
from tocsin import Broken, Refused, TryLater
from tocsin.testing import ManualClock

from .conftest import World

NAMES = st.sampled_from("abcdefgh")
CHANGES = st.tuples(st.just("change"), NAMES, st.integers(0, 300))
BURSTS = st.tuples(st.just("burst"), st.integers(2, 9))
PAUSES = st.tuples(st.just("wait"), st.sampled_from([0.4, 1, 20, 60, 600, 7200]))
READS = st.tuples(st.just("read"), st.sampled_from([1, 2, 3, None]))
SKEWS = st.tuples(st.just("skew"), st.integers(-180, 180))
FAULTS = st.tuples(
    st.just("fail"), st.sampled_from([TryLater("busy"), Broken("500"), Refused("400")])
)
OTHERS = st.sampled_from([("restart",), ("expire",)])
COURSES = st.lists(CHANGES | BURSTS | PAUSES | READS | READS | SKEWS | FAULTS | OTHERS, max_size=40)


@settings(max_examples=scale_examples(300))
@given(course=COURSES)
def test_it_ends_with_the_truth_and_nothing_is_left_out(course):
    asyncio.run(live(course))


async def live(course):
    world = World(ManualClock())
    reading = world.reading(first_fetch="10m", longest_window="30m")
    await reading.read(most=1)
    for number, step in enumerate(course):
        await take(step, number, world, reading)
    reading.provider.script.clear()
    for _ in range(20):
        world.clock.advance(minutes=2)
        await reading.read()
    truth = {name: case.title for name, case in world.siem.truth().items()}
    assert reading.latest == truth
    versions = [(incident.external_id, incident.changed_at) for incident in reading.incidents]
    assert len(versions) == len(set(versions))
    assert reading.lost == []
    assert all(one[1] >= other[0] for one, other in pairwise(reading.spans))


async def take(step, number, world, reading):
    match step:
        case ("change", name, late):
            visible_at = world.clock.now() + timedelta(seconds=late)
            world.put(name, f"version {number}", ago=0, visible_at=visible_at)
        case ("burst", size):
            for place in range(size):
                world.put(f"{number}-{place}", ago=0)
        case ("wait", seconds):
            world.clock.advance(seconds=seconds)
        case ("skew", seconds):
            world.siem.skew = timedelta(seconds=seconds)
        case ("fail", error):
            reading.provider.script = [None, error]
        case ("restart",):
            reading.restart()
        case ("expire",):
            reading.provider.generation += 1
        case ("read", most):
            with suppress(TryLater, Broken, Refused):
                await reading.read(most)
