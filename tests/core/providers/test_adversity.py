"""What SIEMs do that once lost incidents, or stopped everything behind one of them."""

from __future__ import annotations

from contextlib import aclosing, suppress
from dataclasses import replace
from datetime import timedelta

import orjson
import pytest

from tocsin import Broken, Listing, Refused, TryLater, Window

HOUR = timedelta(hours=1)


async def read_for(reading, minutes: int) -> None:
    """Read once a minute, whatever comes of it."""
    for _ in range(minutes):
        with suppress(Broken, Refused, TryLater):
            await reading.read()
        reading.world.clock.advance(minutes=1)


@pytest.fixture
def reading(world):
    reading = world.reading()
    reading.world = world
    return reading


@pytest.mark.parametrize("days", [-1, 1])
async def test_one_answer_with_a_wrong_date_loses_nothing(reading, world, monkeypatch, days):
    await read_for(reading, 2)
    real = world.siem.now
    with monkeypatch.context() as wrong:
        wrong.setattr(world.siem, "now", lambda: real() + timedelta(days=days))
        await read_for(reading, 2)
    for number in range(30):
        world.put(f"after-{number}", ago=45)
        await read_for(reading, 1)
    await read_for(reading, 1)
    assert len(reading.latest) == 30


@pytest.mark.parametrize("days", [-1, 1])
async def test_a_clock_of_the_siem_that_is_set_for_good_is_followed(reading, world, days):
    await read_for(reading, 5)
    for skew in (timedelta(days=days), timedelta(0)):
        world.siem.skew = skew
        await read_for(reading, 5)
        world.put(f"at-{skew}", ago=45)
        await read_for(reading, 5)
    assert len(reading.latest) == 2


async def test_a_clock_of_ours_that_was_ahead_hides_nothing(reading, world):
    listed = reading.provider.list_changes

    async def without_time(*asked):
        return replace(await listed(*asked), server_time=None)

    reading.provider.list_changes = without_time
    await read_for(reading, 2)
    world.clock.advance(days=1)
    world.siem.skew = -timedelta(days=1)
    await read_for(reading, 2)
    world.clock.advance(days=-1)
    world.siem.skew = timedelta(0)
    world.put("after", ago=45)
    await read_for(reading, 2)
    assert "after" in reading.latest


@pytest.mark.parametrize("error", [Refused("404"), KeyError("entities"), Broken("500")])
async def test_details_that_cannot_be_had_stop_nothing(reading, world, error):
    for name in ("before", "odd", "after"):
        world.put(name)

    async def complete(incident, record):
        if incident.external_id == "odd":
            raise error
        return incident

    reading.provider.complete = complete
    await read_for(reading, 2)
    assert set(reading.latest) == {"before", "odd", "after"}


async def test_details_under_a_rate_limit_go_on_where_they_stopped(reading, world):
    for number in range(100):
        world.put(f"case-{number}", ago=60 + number)
    asked: list[str] = []

    async def complete(incident, record):
        if len(asked) % 30 == 29 and asked[-1] != "busy":
            asked.append("busy")
            raise TryLater("429")
        asked.append(incident.external_id)
        return incident

    reading.provider.complete = complete
    await read_for(reading, 8)
    assert len(reading.latest) == 100
    assert len([name for name in asked if name != "busy"]) == 100


async def test_pages_without_end_are_broken(reading, world):
    asked = 0

    async def list_changes(stream, window, token, limit):
        nonlocal asked
        asked += 1
        return Listing(records=[], next_token=asked)

    reading.provider.list_changes = list_changes
    for _ in range(5):
        await reading.read(200)  # as many as are read at once
    with pytest.raises(Broken, match="more than 1,000 pages"):
        await reading.read(200)
    assert asked < 1_100


async def test_a_backfill_that_did_not_come_to_its_end_says_so(world):
    reading = world.reading(settle_delay="5m")
    now = world.clock.now()
    past = reading.provider.backfill("changed", None, Window(now - HOUR, now))
    async with aclosing(past) as pages:
        await anext(pages)
        with pytest.raises(TryLater, match="not the end of the window"):
            await anext(pages)


async def test_what_differs_in_every_answer_can_be_left_out(reading, world):
    world.put("a", ago=60)
    listed = reading.provider.list_changes
    scores, completed = iter(range(100)), []

    async def list_changes(*asked):
        found = await listed(*asked)
        return Listing(records=[{**record, "score": next(scores)} for record in found.records])

    async def complete(incident, record):
        completed.append(incident.external_id)
        return incident

    reading.provider.list_changes, reading.provider.complete = list_changes, complete
    reading.provider.record_version = lambda record: {
        name: record[name] for name in record if name != "score"
    }
    await read_for(reading, 9)
    assert completed == ["a"]


async def test_a_position_stays_small_however_much_has_changed(world):
    reading = world.reading(longest_window="12h")
    reading.provider.page_size = 200
    for number in range(6_000):
        world.put(f"case-{number}", ago=600 + number)
    largest = 0
    async with aclosing(reading.provider.read("changed", None, world.clock.now())) as pages:
        async for page in pages:
            largest = max(largest, len(orjson.dumps(page.next_position)))
    assert largest < 100_000


async def test_an_outage_of_what_is_new_is_not_given_up(reading, world):
    await read_for(reading, 1)
    world.clock.advance(hours=1)
    down = world.clock.now() - timedelta(minutes=59)
    listed = reading.provider.list_changes
    asked = 0

    async def list_changes(stream, window, token, limit):
        nonlocal asked
        asked += 1
        if window.end > down:
            raise Broken(f"500, request {asked}")
        return await listed(stream, window, token, limit)

    reading.provider.list_changes = list_changes
    await read_for(reading, 8)  # an hour, with the pauses between
    assert reading.lost == []
    world.put("during", ago=120)
    reading.provider.list_changes = listed
    await read_for(reading, 3)
    assert "during" in reading.latest


async def test_neighbors_that_break_are_given_up_and_what_is_behind_them_read(reading, world):
    await read_for(reading, 1)
    world.clock.advance(minutes=5)
    for ago in (118, 119, 120):
        world.put(f"poison-{ago}", ago=ago)
        world.siem.poisoned.add(f"poison-{ago}")
    world.put("before", ago=140)
    world.put("behind", ago=100)
    await read_for(reading, 6)
    assert {"before", "behind"} <= set(reading.latest)
    assert sum((span.end - span.start for span in reading.lost), timedelta(0)) == timedelta(
        seconds=3
    )
