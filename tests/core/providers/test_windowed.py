"""Reading by windows: each change once, none missed, whatever the SIEM does meanwhile."""

from __future__ import annotations

import asyncio
import gc
from contextlib import aclosing, suppress
from datetime import timedelta
from itertools import pairwise

import pytest

from tocsin import Broken, CredentialsRefused, Refused, TryLater, Window

SECOND = timedelta(seconds=1)
OVERLAP = timedelta(minutes=10)
SETTLE = timedelta(seconds=30)


async def test_the_first_read_begins_as_long_ago_as_it_is_told(world):
    world.put("old", ago=3 * 3600)
    world.put("recent", ago=1800)
    assert await world.reading(first_fetch="1h").read() == ["recent"]


async def test_an_overlap_larger_than_the_first_read_brings_nothing_older(world):
    world.put("old", ago=2 * 3600)
    world.put("recent", ago=1800)
    reading = world.reading(first_fetch="1h", overlap="1d")
    assert await reading.read() == ["recent"]
    world.clock.advance(minutes=5)
    world.put("new", ago=60)
    assert await reading.read() == ["new"]


async def test_a_first_read_of_no_time_at_all_brings_what_changes_from_then_on(world):
    world.put("old", ago=3600)
    reading = world.reading(first_fetch="0s")
    assert await reading.read() == []
    world.clock.advance(minutes=2)
    world.put("new", ago=60)
    assert await reading.read() == ["new"]


async def test_the_former_name_of_a_setting_is_accepted(world):
    settings = world.reading(reread_after=["5m"]).provider.settings
    assert settings.refresh_after == (timedelta(minutes=5),)


async def test_an_empty_first_read_is_not_the_first_again(world):
    reading = world.reading(first_fetch="1h")
    await reading.read()
    world.clock.advance(hours=5)
    world.put("meanwhile", ago=4 * 3600)
    assert await reading.read() == ["meanwhile"]


async def test_what_has_not_settled_is_left_for_the_next_read(world):
    reading = world.reading()
    await reading.read()
    world.put("fresh", ago=10)
    assert await reading.read() == []
    world.clock.advance(seconds=60)
    assert await reading.read() == ["fresh"]


async def test_a_long_time_is_read_in_windows_that_leave_nothing_out(world):
    await (reading := world.reading(first_fetch="5h", longest_window="1h")).read()
    assert [end - start for start, end in reading.spans[:-1]] == [timedelta(hours=1)] * 4
    assert all(one[1] == other[0] for one, other in pairwise(reading.spans))
    now = world.clock.now()
    assert (reading.spans[0][0], reading.spans[-1][1]) == (now - timedelta(hours=5), now - SETTLE)


async def test_the_ends_of_windows_are_whole_seconds(world):
    world.clock.advance(microseconds=123_456)
    reading = world.reading(first_fetch="90m")
    await reading.read()
    ends = {end.microsecond for window, _, _ in reading.provider.asked for end in _ends(window)}
    assert ends == {0}


def _ends(window: Window):
    return window.start, window.end


async def test_what_changes_within_one_moment_survives_the_end_of_a_page(world):
    for number in range(10):
        world.put(f"twin-{number}")
    assert sorted(await world.reading().read()) == [f"twin-{number}" for number in range(10)]


async def test_nothing_is_brought_twice(world):
    reading = world.reading()
    for number in range(20):
        world.put(f"case-{number}", ago=60 + 40 * number)
    await reading.read()
    for _ in range(5):
        world.clock.advance(minutes=1)
        assert await reading.read() == []


async def test_what_becomes_visible_late_is_found(world):
    world.put("late", ago=60, visible_at=world.clock.now() + timedelta(minutes=5))
    reading = world.reading()
    for _ in range(6):
        await reading.read()
        world.clock.advance(minutes=1)
    assert reading.latest == {"late": "first"}


async def test_what_changes_while_pages_are_read_is_not_missed(world):
    for number in range(10):
        world.put(f"case-{number}", ago=600 - number)
    reading = world.reading()

    def change_one() -> None:
        world.clock.advance(seconds=1)
        world.put(f"case-{len(reading.provider.asked)}", "changed", ago=0)

    reading.provider.between = change_one
    await reading.read()
    reading.provider.between = lambda: None
    world.clock.advance(minutes=2)
    await reading.read()
    truth = {name: case.title for name, case in world.siem.truth().items()}
    assert reading.latest == truth


async def test_a_window_stays_as_it_is_until_its_last_page_is_stored(world):
    for number in range(8):
        world.put(f"case-{number}", ago=600 + number)
    reading = world.reading()
    await reading.read(most=26)  # two pages of the last window
    first = reading.provider.asked[-1][0]
    reading.restart()
    world.clock.advance(hours=2)
    await reading.read(most=1)
    [(window, token, _)] = reading.provider.asked
    assert (window, token is None) == (first, False)


@pytest.mark.parametrize("script", [[], [Broken("500")]])
async def test_the_next_page_is_requested_while_one_is_stored(world, caplog, script):
    for number in range(9):
        world.put(str(number))
    provider = world.reading(first_fetch="1h").provider
    tasks = asyncio.all_tasks()
    async with aclosing(provider.read("changed", None, world.clock.now())) as pages:
        while not (await anext(pages)).incidents:
            pass
        provider.script, asked = script, len(provider.asked)
        await asyncio.sleep(0)
        assert len(provider.asked) == asked + 1
    gc.collect()
    assert asyncio.all_tasks() == tasks
    assert not caplog.records  # of an error that nobody has read


async def test_an_expired_page_token_begins_its_window_anew(world):
    for number in range(8):
        world.put(f"case-{number}", ago=600 + number)
    reading = world.reading()
    await reading.read(most=26)
    reading.provider.generation += 1
    await reading.read()
    assert sorted(reading.latest) == [f"case-{number}" for number in range(8)]
    assert len(reading.incidents) == 8


async def test_tokens_that_expire_too_soon_for_a_window_lead_to_smaller_ones(world):
    for number in range(40):
        world.put(f"case-{number}", ago=3000 + 10 * number)
    reading = world.reading(first_fetch="2h")
    asked = reading.provider.asked

    def expire() -> None:
        window = asked[-1][0] if asked else None
        if [other for other, _, _ in asked[-3:]] == [window] * 3:
            reading.provider.generation += 1

    reading.provider.between = expire
    for _ in range(3):
        with suppress(Broken):
            await reading.read()
    assert sorted(reading.latest) == sorted(f"case-{number}" for number in range(40))
    assert reading.lost == []


async def test_a_page_that_leads_to_itself_is_not_asked_for_for_ever(world):
    for number in range(8):
        world.put(f"case-{number}")
    reading = world.reading()
    listed = reading.provider.list_changes

    async def same_again(stream, window, token, limit):
        return await listed(stream, window, None, limit)

    reading.provider.list_changes = same_again
    with pytest.raises(Broken, match="same page token twice"):
        await reading.read()
    assert reading.lost == []


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (TryLater("busy"), TryLater),
        (Broken("no JSON"), Broken),
        (Refused("expired"), Broken),  # it is the token that is no longer valid
        (CredentialsRefused("no"), CredentialsRefused),
    ],
)
async def test_a_page_that_fails_holds_the_position(world, error, raised):
    for number in range(8):
        world.put(f"case-{number}")
    reading = world.reading(first_fetch="30m")
    reading.provider.script = [None, error]
    with pytest.raises(raised):
        await reading.read()
    stored = len(reading.incidents)
    await reading.read()
    assert (stored, len(reading.incidents), len(reading.latest)) == (3, 8, 8)


async def test_an_incident_that_breaks_its_page_costs_its_second_alone(world):
    for number in range(40):
        world.put(f"case-{number}", ago=1200 + 10 * number)
    world.siem.poisoned = {"case-7"}
    reading = world.reading(first_fetch="1h")
    for _ in range(2):
        with pytest.raises(Broken):
            await reading.read()
    assert reading.lost == []
    await reading.read()
    assert sorted(reading.latest) == sorted(f"case-{number}" for number in range(40) if number != 7)
    [lost] = reading.lost
    changed_at = world.siem.get("case-7").changed_at
    assert lost.start <= changed_at < lost.end == lost.start + SECOND
    assert _merged(reading.spans) == [
        (world.clock.now() - timedelta(hours=1), world.clock.now() - SETTLE)
    ]


async def test_a_second_that_was_given_up_does_not_break_the_next_read(world):
    world.put("poison", ago=60)
    world.siem.poisoned = {"poison"}
    reading = world.reading(first_fetch="1h")
    for _ in range(2):
        with pytest.raises(Broken):
            await reading.read()
    await reading.read()
    world.clock.advance(minutes=1)
    world.put("next", ago=40)
    assert await reading.read() == ["next"]


async def test_nothing_is_given_up_where_everything_breaks(world):
    world.put("case", ago=600)
    reading = world.reading(first_fetch="1h")
    await reading.read(most=1)
    reading.provider.script = [Broken("500")] * 1_000
    for _ in range(6):
        with pytest.raises(Broken):
            await reading.read()
    assert reading.covered == []
    reading.provider.script = []
    assert await reading.read() == ["case"]


async def test_a_clock_behind_ours_ends_the_window_where_it_has_come_to(world):
    world.siem.skew = -timedelta(minutes=5)
    reading = world.reading(first_fetch="1h")
    await reading.read()
    assert reading.spans[-1][1] == world.clock.now() - timedelta(minutes=5) - SETTLE
    assert reading.provider.clock_skew == -timedelta(minutes=5)


async def test_what_a_clock_ahead_of_ours_stamped_is_read_once_its_time_has_come_there(world):
    world.siem.skew = timedelta(minutes=5)
    reading = world.reading(first_fetch="1h")
    for _ in range(2):
        world.clock.advance(minutes=1)
        await reading.read()
    world.put("ahead", ago=40)
    assert await reading.read() == ["ahead"]
    assert reading.provider.clock_skew == timedelta(minutes=5)


async def test_without_the_time_of_the_siem_ours_decides(world):
    reading = world.reading(first_fetch="1h")
    reading.provider.tells_time = False
    await reading.read()
    assert reading.spans[-1][1] == world.clock.now() - SETTLE
    assert reading.provider.clock_skew is None


async def test_a_record_that_cannot_be_understood_is_set_aside_once(world):
    world.put("broken", malformed=True)
    world.put("whole")
    reading = world.reading()
    await reading.read()
    world.clock.advance(minutes=1)
    await reading.read()
    assert list(reading.latest) == ["whole"]
    [rejected] = reading.rejected
    assert rejected.reason == "it is malformed"
    assert b"broken" in rejected.content


async def test_a_record_that_meets_a_bug_holds_up_no_other(world):
    world.put("bug", "strange")
    world.put("whole")
    reading = world.reading()
    understood = reading.provider.to_incident

    def to_incident(record):
        return {}["title"] if record["case"]["title"] == "strange" else understood(record)

    reading.provider.to_incident = to_incident
    assert await reading.read() == ["whole"]
    assert "KeyError" in reading.rejected[0].reason


async def test_an_incident_whose_details_break_is_kept_without_them_for_now(world):
    world.put("case")
    reading = world.reading()

    async def complete(incident, record):
        raise Broken("500")

    reading.provider.complete = complete
    assert await reading.read() == ["case"]
    assert reading.incomplete == ["case"]


async def test_a_position_of_another_version_is_refused_and_not_begun_anew(world):
    reading = world.reading()
    await reading.read()
    reading.position = {**reading.position, "version": 99}
    with pytest.raises(Refused, match="version 99"):
        await reading.read()


@pytest.mark.parametrize("position", [{}, {"version": 1}, {"version": 1, "watermark": "noon"}])
async def test_a_position_that_nobody_wrote_is_refused(world, position):
    reading = world.reading()
    reading.position = position
    with pytest.raises(Refused):
        await reading.read()


async def test_a_backfill_brings_its_window_and_nothing_else(world):
    for hours in range(1, 9):
        world.put(f"{hours}h", ago=hours * 3600)
    now = world.clock.now()
    window = Window(now - timedelta(hours=5), now - timedelta(hours=2))
    reading = world.reading()
    brought = await reading._store(reading.provider.backfill("changed", None, window), None)
    assert brought == ["5h", "4h", "3h"]
    assert _merged(reading.spans) == [(window.start, window.end)]
    assert min(asked.start for asked, _, _ in reading.provider.asked) == window.start


async def test_a_backfill_goes_on_where_it_was_interrupted(world):
    for number in range(20):
        world.put(f"case-{number:02}", ago=7200 - number)
    now = world.clock.now()
    window = Window(now - timedelta(hours=3), now - timedelta(hours=1))
    reading = world.reading()
    for _ in range(12):
        await reading._store(reading.provider.backfill("changed", reading.position, window), most=1)
        reading.restart()
    assert [incident.external_id for incident in reading.incidents] == [
        f"case-{number:02}" for number in range(20)
    ]


async def test_a_second_that_breaks_in_a_backfill_is_tried_again_and_not_given_up(world):
    case = world.put("poison", ago=3600)
    world.siem.poisoned = {"poison"}
    start = case.changed_at.replace(microsecond=0)
    window = Window(start, start + SECOND)
    reading = world.reading()
    for _ in range(5):
        with pytest.raises(Broken):
            await reading._store(reading.provider.backfill("changed", None, window), None)
    world.siem.poisoned.clear()
    again = reading.provider.backfill("changed", reading.position, window)
    assert await reading._store(again, None) == ["poison"]


def _merged(spans):
    merged = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged
