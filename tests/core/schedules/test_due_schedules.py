"""What is due is run once, in time or not at all."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import update

from schedule_harness import HOUR, MINUTE, NOW
from tocsin.errors import RequestError
from tocsin.schedules import (
    change_schedule,
    delete_schedule,
    disable_schedule,
    enable_schedule,
    run_now,
)
from tocsin.schedules.admission import MAX_WAITING
from tocsin.schedules.due_schedules import BATCH_SIZE, fire_due
from tocsin.store.tables import schedules


async def test_nothing_runs_before_its_time(office):
    made = await office.make()
    assert await office.fire(minutes=59) == []
    assert (await office.load(made.id)).next_run_at == NOW + HOUR


async def test_a_run_is_a_session_of_what_the_schedule_says(office):
    given = {"persona": "threat-hunter", "provider": "edge", "timeout": "2m"}
    made = await office.make(**given)
    assert await office.fire(hours=1) == ["running"]
    [session] = await office.sessions()
    assert (session["query"], session["persona"]) == ("new logins", "threat-hunter")
    assert (session["provider"], session["timeout_ms"]) == ("edge", 120_000)
    assert (session["schedule_id"], session["created_by"]) == (made.id, "schedules")
    [run] = await office.runs()
    assert (run["session_id"], run["fire_at"]) == (session["id"], NOW + HOUR)
    after = await office.load(made.id)
    assert (after.last_run_at, after.next_run_at) == (NOW + HOUR, NOW + 2 * HOUR)


async def test_a_fire_time_is_run_once_however_many_nodes_look(office):
    for number in range(3 * BATCH_SIZE):
        await office.make(f"hourly-{number}")
    office.clock.advance(hours=1)
    nodes = [office.node() for _ in range(3)]
    await asyncio.gather(*(office.fire(node) for node in nodes))
    runs = await office.runs()
    assert len(runs) == len({run["schedule_id"] for run in runs}) == 3 * BATCH_SIZE
    assert len(await office.sessions()) == 3 * BATCH_SIZE


async def test_nothing_remains_of_a_run_whose_transaction_is_lost(office):
    await office.make()
    office.clock.advance(hours=1)

    def fire_and_crash(connection):
        fire_due(connection, office.clock.now())
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await office.database.write(fire_and_crash)
    assert (await office.runs(), await office.sessions()) == ([], [])
    assert await office.fire() == ["running"]


async def test_what_is_late_still_runs_within_its_grace(office):
    await office.make(misfire_grace="30m")
    assert await office.fire(minutes=90) == ["running"]


async def test_what_is_later_than_its_grace_is_recorded_as_missed(office):
    made = await office.make(misfire_grace="30m")
    assert await office.fire(minutes=90, seconds=1) == ["missed"]
    [run] = await office.runs()
    assert (run["fire_at"], run["count"], run["until"]) == (NOW + HOUR, 1, None)
    assert run["reason"] == "no node was running at the time"
    assert (await office.load(made.id)).next_run_at == NOW + 2 * HOUR
    assert await office.sessions() == []


async def test_after_an_outage_the_latest_runs_and_those_before_are_one_record(office):
    await office.make()
    assert await office.fire(hours=10, minutes=5) == ["missed", "running"]
    missed, run = await office.runs()
    assert (missed["fire_at"], missed["until"], missed["count"]) == (NOW + HOUR, NOW + 9 * HOUR, 9)
    assert run["fire_at"] == NOW + 10 * HOUR


async def test_a_clock_that_is_set_back_runs_nothing_again(office):
    made = await office.make()
    await office.fire(hours=1)
    await office.complete()
    assert await office.fire(hours=-2) == []
    await office.stop(disable_schedule, made.id)
    await office.do(enable_schedule, made.id)
    assert (await office.load(made.id)).next_run_at == NOW + HOUR
    assert await office.fire(hours=2) == []
    assert await office.states() == ["completed"]
    assert await office.fire(hours=1) == ["running"]


async def test_a_clock_that_is_set_back_hides_nothing_that_comes_after(office):
    made = await office.make()
    await office.fire(hours=1)
    await office.complete()
    office.clock.advance(hours=-1)
    await office.stop(disable_schedule, made.id)
    await office.do(enable_schedule, made.id)
    assert await office.fire(hours=6) == ["missed", "running"]
    _, missed, run = await office.runs()
    assert (missed["fire_at"], missed["until"]) == (NOW + 2 * HOUR, NOW + 5 * HOUR)
    assert run["fire_at"] == NOW + 6 * HOUR


async def test_what_was_missed_is_not_run_where_a_clock_comes_to_it_again(office):
    made = await office.make(misfire_grace="10s")
    assert await office.fire(hours=2, minutes=30) == ["missed"]
    office.clock.advance(hours=-2)
    await office.stop(disable_schedule, made.id)
    await office.do(enable_schedule, made.id)
    assert await office.fire(minutes=30) == []
    assert await office.fire(hours=1) == []
    assert await office.fire(hours=1) == ["running"]


async def test_a_clock_that_had_jumped_ahead_is_mended_by_enabling(office):
    made = await office.make()
    await office.fire(days=365)
    await office.complete()
    office.clock.advance(days=-365)
    assert await office.fire(hours=1, minutes=30) == []
    assert (await office.do(enable_schedule, made.id)).next_run_at == NOW + 2 * HOUR
    assert await office.fire(hours=1) == ["running"]


async def test_enabling_what_is_enabled_changes_nothing(office):
    made = await office.make(jitter="50m")
    office.clock.advance(seconds=(made.next_run_at - NOW).total_seconds() - 1)
    assert await office.do(enable_schedule, made.id) == await office.load(made.id) == made


async def test_what_waits_for_its_jitter_when_its_time_is_changed_is_recorded(office):
    made = await office.make(jitter="50m")
    office.clock.advance(seconds=(made.next_run_at - NOW).total_seconds() - 1)
    definition = made.definition.model_copy(update={"ends_at": NOW + 9 * HOUR})
    await office.do(
        lambda connection, held, now: change_schedule(connection, held, definition, now), made.id
    )
    [missed] = await office.runs()
    assert (missed["fire_at"], missed["count"]) == (NOW + HOUR, 1)


async def test_jitter_puts_a_run_off_and_its_fire_time_still_names_it(office):
    made = await office.make(jitter="30m")
    due = made.next_run_at
    assert NOW + HOUR <= due < NOW + HOUR + 30 * MINUTE
    assert await office.fire(seconds=(due - NOW).total_seconds() - 0.001) == []
    assert await office.fire(seconds=0.001) == ["running"]
    [run] = await office.runs()
    assert (run["fire_at"], run["due_at"]) == (NOW + HOUR, due)


async def test_nothing_follows_the_end_of_a_schedule(office):
    made = await office.make(ends_at=NOW + HOUR)
    assert await office.fire(hours=1) == ["running"]
    assert (await office.load(made.id)).next_run_at is None
    assert await office.fire(hours=5) == []


async def test_where_runs_overlap_the_later_is_skipped_and_says_why(office):
    await office.make()
    await office.fire(hours=1)
    assert await office.fire(hours=1) == ["skipped"]
    running, skipped = await office.runs()
    assert skipped["reason"] == f"the previous run is still in progress ({running['session_id']})"
    await office.complete()
    assert await office.fire(hours=1) == ["running"]


async def test_where_runs_overlap_the_later_waits_if_it_is_to(office):
    await office.make(overlap="queue")
    for expected in ["running", "waiting", "waiting"]:
        assert await office.fire(hours=1) == [expected]
    assert len(await office.sessions()) == 1
    await office.complete()
    assert await office.states() == ["completed", "running", "waiting"]
    await office.complete()
    await office.complete()
    assert await office.states() == ["completed"] * 3


async def test_only_so_many_runs_wait(office):
    await office.make(overlap="queue")
    outcomes = [await office.fire(hours=1) for _ in range(MAX_WAITING + 2)]
    assert outcomes[-2:] == [["waiting"], ["skipped"]]
    assert (await office.runs())[-1]["reason"] == "10 runs are already waiting"


@pytest.mark.parametrize("action", [disable_schedule, delete_schedule])
async def test_what_waits_is_left_out_when_the_schedule_is_stopped(office, action):
    made = await office.make(overlap="queue")
    await office.fire(hours=1)
    await office.fire(hours=1)
    stop = office.stop if action is disable_schedule else office.do
    stopped = await stop(action, made.id)
    assert await office.states() == ["running", "skipped"]
    assert (await office.runs())[1]["reason"] == f"the schedule was {stopped.status}"
    await office.complete()
    assert await office.states() == ["completed", "skipped"]
    assert await office.fire(hours=5) == []


async def test_what_was_due_when_it_was_disabled_is_recorded(office):
    made = await office.make()
    office.clock.advance(hours=3)
    await office.stop(disable_schedule, made.id)
    [missed] = await office.runs()
    assert (missed["state"], missed["count"]) == ("missed", 3)
    assert missed["reason"] == "the schedule was disabled before the run"


async def test_what_was_due_when_its_time_was_changed_is_recorded(office):
    made = await office.make()
    office.clock.advance(hours=1)
    definition = made.definition.model_copy(update={"interval": timedelta(minutes=20)})
    changed = await office.do(
        lambda connection, held, now: change_schedule(connection, held, definition, now), made.id
    )
    assert changed.next_run_at == NOW + HOUR + 20 * MINUTE
    assert await office.states() == ["missed"]


async def test_a_change_of_the_query_leaves_the_time_as_it_is(office):
    made = await office.make()
    office.clock.advance(minutes=30)
    definition = made.definition.model_copy(update={"query": "old logins"})
    changed = await office.do(
        lambda connection, held, now: change_schedule(connection, held, definition, now), made.id
    )
    assert (changed.next_run_at, changed.revision) == (made.next_run_at, 2)


async def test_an_enabled_schedule_goes_on_with_its_next_time(office):
    made = await office.make()
    await office.stop(disable_schedule, made.id)
    assert await office.fire(hours=3, minutes=30) == []
    enabled = await office.do(enable_schedule, made.id)
    assert enabled.next_run_at == NOW + 4 * HOUR
    assert await office.runs() == []


async def run_by_hand(office, schedule_id):
    return await office.do(
        lambda connection, held, now: run_now(connection, held, "ana", now), schedule_id
    )


async def test_a_run_by_hand_is_its_callers_and_changes_no_time(office):
    made = await office.make()
    row = await run_by_hand(office, made.id)
    [session] = await office.sessions()
    assert (row["trigger"], row["session_id"]) == ("manual", session["id"])
    assert session["created_by"] == "ana"
    assert (await office.load(made.id)).next_run_at == NOW + HOUR


async def test_a_disabled_schedule_is_run_by_hand(office):
    made = await office.make()
    await office.stop(disable_schedule, made.id)
    assert (await run_by_hand(office, made.id))["state"] == "running"


async def test_a_run_by_hand_is_refused_while_another_is_under_way(office):
    made = await office.make()
    await run_by_hand(office, made.id)
    with pytest.raises(RequestError, match="in progress"):
        await run_by_hand(office, made.id)


async def test_a_run_by_hand_waits_where_runs_queue(office):
    made = await office.make(overlap="queue")
    await run_by_hand(office, made.id)
    assert (await run_by_hand(office, made.id))["state"] == "waiting"


async def write(office, schedule, **members):
    """Have a definition be as another version, or another node, has it."""

    def write_it(connection):
        row = update(schedules).where(schedules.c.id == schedule.id)
        connection.execute(row.values(definition={**schedule.document, **members}))

    await office.database.write(write_it)


@pytest.mark.parametrize("wrong", [{"timezone": "Mars/Olympus"}, {"is_new": True}])
async def test_a_definition_that_is_not_understood_is_put_off_and_stops_nothing_else(office, wrong):
    broken, well = await office.make("broken"), await office.make("well")
    await write(office, broken, **wrong)
    assert await office.fire(hours=1) == ["running"]
    after = await office.load(broken.id)
    assert after.next_run_at == NOW + HOUR + MINUTE
    [name] = wrong
    assert after.last_error.startswith(f"invalid definition: {name}: ")
    await office.do(delete_schedule, well.id)
    await write(office, broken)
    assert await office.fire(hours=2) == ["missed", "running"]
    missed, _ = await office.runs(broken.id)
    assert (missed["fire_at"], missed["count"]) == (NOW + HOUR, 2)


async def test_one_of_each_name_until_it_is_deleted(office):
    from tocsin.errors import NameTakenError

    made = await office.make("nightly")
    with pytest.raises(NameTakenError):
        await office.make("nightly")
    await office.do(delete_schedule, made.id)
    assert (await office.make("nightly")).id != made.id
