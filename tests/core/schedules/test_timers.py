"""A node wakes when something is due, and follows what others change."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from schedule_harness import Office
from tocsin.clock import SystemClock
from tocsin.recurrence import Recurrence, ScheduleDefinition
from tocsin.schedules import delete_schedule
from tocsin.schedules.timers import DueTimeTrigger, ScheduleTimers

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def recurrence(anchor: datetime = NOW, **given) -> Recurrence:
    return Recurrence(ScheduleDefinition(query="new logins", **given), "sch_1", anchor)


def test_an_alarm_goes_off_at_each_fire_time_and_never_for_what_has_passed():
    trigger = DueTimeTrigger(recurrence(interval="1h"))
    assert trigger.get_next_fire_time(None, NOW) == NOW + timedelta(hours=1)
    late = NOW + timedelta(hours=50)
    assert trigger.get_next_fire_time(NOW, late) == late + timedelta(hours=1)


def test_an_alarm_of_what_has_ended_goes_off_no_more():
    trigger = DueTimeTrigger(recurrence(interval="1h", ends_at=NOW + timedelta(hours=2)))
    assert trigger.get_next_fire_time(None, NOW + timedelta(hours=2)) is None


@pytest.fixture
async def rung():
    return asyncio.Event()


@pytest.fixture
async def alarms(rung):
    made = ScheduleTimers(rung.set)
    made.start()
    yield made
    made.stop()


def soon() -> datetime:
    """Return an anchor from which ten seconds are over in a moment."""
    return datetime.now(UTC) - 10 * SECOND + timedelta(milliseconds=100)


async def test_a_bell_is_rung_when_a_schedule_is_due(alarms, rung):
    alarms.set("sch_1", 1, recurrence(soon(), interval="10s"))
    async with asyncio.timeout(5):
        await rung.wait()


async def test_only_what_has_changed_is_set_anew(alarms):
    alarms.set("sch_1", 1, recurrence(interval="1h"))
    assert alarms.changed({"sch_1": 1, "sch_2": 1}) == ["sch_2"]
    assert alarms.changed({"sch_1": 2}) == ["sch_1"]
    alarms.keep({})
    assert alarms.changed({"sch_1": 1}) == ["sch_1"]


async def test_what_is_forgotten_rings_no_more(alarms, rung):
    alarms.set("sch_1", 1, recurrence(soon(), interval="10s"))
    alarms.keep({})
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await rung.wait()


async def test_what_has_rung_for_the_last_time_is_forgotten_like_any_other(alarms, rung):
    anchor = soon()
    alarms.set("sch_1", 1, recurrence(anchor, interval="10s", ends_at=anchor + 10 * SECOND))
    async with asyncio.timeout(5):
        await rung.wait()
    alarms.keep({})


@pytest.fixture
def office_of_today(database) -> Office:
    return Office(database, SystemClock())


async def test_a_node_runs_what_was_made_while_it_runs(office_of_today):
    office = office_of_today
    group = [asyncio.create_task(loop) for loop in office.node().loops()]
    try:
        begin = datetime.now(UTC) + timedelta(milliseconds=300)
        made = await office.make(interval="1h", starts_at=begin)
        async with asyncio.timeout(20):
            while not await office.runs(made.id):  # noqa: ASYNC110 - a real clock, and a database
                await asyncio.sleep(0.05)
        [run] = await office.runs(made.id)
        assert run["started_at"] - run["due_at"] < 5 * SECOND
        await office.do(delete_schedule, made.id)
    finally:
        for task in group:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*group)
