"""How runs end, what is counted, and who is told of it."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from schedule_harness import FAILURE, HOUR, LIMIT, NOW, REPORT, URL
from tocsin.delivery import build_sample
from tocsin.errors import RequestError
from tocsin.events.payloads import ENVELOPES
from tocsin.investigations import FailureCause, RunFailure, add_message, cancel_session
from tocsin.investigations.runs.completion import RunResult
from tocsin.model import EventType
from tocsin.schedules import (
    DisabledReason,
    ScheduleStatus,
    delete_schedule,
    disable_schedule,
    enable_schedule,
    run_now,
)
from tocsin.store.tables import schedules


async def test_a_scheduled_investigation_that_finishes_is_told(office):
    made = await office.make()
    await office.fire(hours=1)
    await office.complete()
    [event] = await office.events()
    [session] = await office.sessions()
    assert event["event_type"] == "investigation-completed"
    assert event["data"] == {
        "session_id": session["id"],
        "schedule_id": made.id,
        "schedule_name": "nightly",
        "title": "it was nothing",
        "risk_score": 12.5,
        "entity_count": 0,
        "finding_count": 0,
        "url": f"{URL}/investigations/{session['id']}",
    }
    assert (event["subject"], event["related"]) == (
        f"session:{session['id']}",
        [f"schedule:{made.id}", "incident:7"],
    )
    assert event["context"]["report"]["summary"][0]["text"] == "It was nothing."
    assert event["context"]["session"]["status"] == "completed"
    assert event["context"]["schedule"]["name"] == "nightly"


async def test_a_scheduled_investigation_that_encounters_an_error_is_told(office):
    made = await office.make()
    await office.fire(hours=1)
    await office.fail()
    [event] = await office.events()
    [session] = await office.sessions()
    assert event["event_type"] == "investigation-failed"
    assert event["data"] == {
        "session_id": session["id"],
        "schedule_id": made.id,
        "schedule_name": "nightly",
        "error": "incident 404 does not exist",
        "consecutive_failures": 1,
        "url": f"{URL}/schedules/{made.id}",
    }
    assert (event["subject"], event["related"]) == (
        f"schedule:{made.id}",
        [f"session:{session['id']}"],
    )


async def test_the_context_of_a_sample_has_the_members_of_a_real_one(office):
    made = await office.make()
    await office.fire(hours=1)
    await office.complete()
    await office.run_and_fail(LIMIT)
    assert (await office.load(made.id)).status == "disabled"
    told = await office.events()
    assert {event["event_type"] for event in told} == {*EventType} - {EventType.INCIDENT_ALERT}
    for event in told:
        sample = build_sample(EventType(event["event_type"]), URL, NOW)
        assert sample.context.keys() == event["context"].keys()
        for name in event["context"].keys() - {"epoch"}:
            assert sample.context[name].keys() == event["context"][name].keys()


async def test_a_schedule_is_disabled_after_5_consecutive_failures_and_that_is_told(office):
    made = await office.make()
    await office.run_and_fail(LIMIT)
    after = await office.load(made.id)
    assert (after.status, after.disabled_reason) == ("disabled", "consecutive_failures")
    assert (after.consecutive_failures, after.next_run_at) == (LIMIT, None)
    assert await office.told() == ["investigation-failed"] * LIMIT + ["schedule-disabled"]
    disabled = (await office.events())[-1]
    assert disabled["subject"] == f"schedule:{made.id}"
    assert disabled["data"] == {
        "schedule_id": made.id,
        "schedule_name": "nightly",
        "reason": "consecutive_failures",
        "consecutive_failures": LIMIT,
        "last_error": "incident 404 does not exist",
        "url": f"{URL}/schedules/{made.id}",
    }
    assert await office.fire(hours=9) == []


async def test_every_event_has_the_form_that_is_promised(office):
    await office.make()
    await office.fire(hours=1)
    await office.complete()
    await office.run_and_fail(LIMIT)
    for event in await office.events():
        members = {name: event[name] for name in ("event_type", "timestamp", "data")}
        (envelope,) = [it for kind, it in ENVELOPES.items() if kind == event["event_type"]]
        envelope.model_validate(members)


async def test_a_schedule_says_itself_how_often_it_may_fail(office):
    made = await office.make(failure_limit=2)
    await office.run_and_fail(2)
    assert (await office.load(made.id)).status is ScheduleStatus.DISABLED


async def test_success_begins_the_count_anew(office):
    made = await office.make()
    await office.run_and_fail(LIMIT - 1)
    await office.fire(hours=1)
    await office.complete()
    after = await office.load(made.id)
    assert (after.consecutive_failures, after.last_error) == (0, None)
    await office.run_and_fail(LIMIT - 1)
    assert (await office.load(made.id)).is_active


async def test_enabling_begins_the_count_anew(office):
    made = await office.make()
    await office.run_and_fail(LIMIT)
    enabled = await office.do(enable_schedule, made.id)
    assert (enabled.consecutive_failures, enabled.disabled_reason) == (0, None)
    await office.run_and_fail(1)
    after = await office.load(made.id)
    assert (after.consecutive_failures, after.is_active) == (1, True)


@pytest.mark.parametrize("cause", list(FailureCause))
async def test_every_failure_counts_and_its_reason_is_kept(office, cause):
    made = await office.make()
    await office.fire(hours=1)
    await office.fail(RunFailure(cause, "so it is"))
    [run] = await office.runs()
    assert (run["state"], run["cause"], run["reason"]) == ("failed", cause, "so it is")
    assert run["ended_at"] == NOW + HOUR
    after = await office.load(made.id)
    assert (after.consecutive_failures, after.last_error) == (1, "so it is")


async def test_what_follows_a_run_is_stored_with_its_end_or_not_at_all(office):
    made = await office.make(failure_limit=1)
    await office.fire(hours=1)
    [lease] = await office.take_up()

    def crash(_connection, _ended):
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await office.end(lease, RunResult(failure=FAILURE), crash)
    assert (await office.told(), await office.states()) == ([], ["running"])
    assert (await office.load(made.id)).is_active
    await office.end(lease, RunResult(failure=FAILURE))
    assert await office.told() == ["investigation-failed", "schedule-disabled"]


async def test_a_follow_up_to_a_run_neither_counts_nor_is_told(office):
    made = await office.make()
    await office.fire(hours=1)
    await office.complete()
    [session] = await office.sessions()
    await office.database.write(add_message, session["id"], "and?", "ana", office.clock.now())
    await office.fail()
    assert await office.told() == ["investigation-completed"]
    assert (await office.load(made.id)).consecutive_failures == 0


async def test_a_run_by_hand_counts_as_any_other(office):
    made = await office.make(failure_limit=1)
    await office.do(lambda connection, held, now: run_now(connection, held, "ana", now), made.id)
    await office.fail()
    assert (await office.load(made.id)).disabled_reason is DisabledReason.FAILURES


async def test_a_failure_of_a_disabled_schedule_disables_it_no_more(office):
    made = await office.make(failure_limit=1)
    await office.fire(hours=1)
    await office.stop(disable_schedule, made.id)
    await office.fail()
    assert await office.told() == ["investigation-failed"]
    assert (await office.load(made.id)).disabled_reason is DisabledReason.MANUAL


async def test_a_run_of_a_deleted_schedule_ends_as_it_does(office):
    made = await office.make()
    await office.fire(hours=1)
    await office.do(delete_schedule, made.id)
    await office.complete()
    assert await office.states() == ["completed"]
    assert (await office.load(made.id)).status is ScheduleStatus.DELETED


async def cancel(office):
    [session] = [
        session for session in await office.sessions() if session["status"] in ("queued", "running")
    ]
    await office.database.write(cancel_session, session["id"], office.clock.now())
    return session["id"]


async def test_a_cancelled_run_neither_counts_nor_is_told_and_the_next_one_runs(office):
    made = await office.make(overlap="queue")
    await office.run_and_fail(1)
    await office.fire(hours=1)
    await office.fire(hours=1)
    await cancel(office)
    await office.node().settle_abandoned()
    assert await office.states() == ["failed", "cancelled", "running"]
    assert await office.told() == ["investigation-failed"]
    assert (await office.load(made.id)).consecutive_failures == 1


async def test_a_cancelled_run_that_goes_on_with_a_follow_up_is_over(office):
    await office.make()
    await office.fire(hours=1)
    session_id = await cancel(office)
    await office.database.write(add_message, session_id, "and?", "ana", office.clock.now())
    await office.complete()
    await office.node().settle_abandoned()
    assert await office.states() == ["cancelled"]
    assert await office.told() == []


async def test_a_run_that_no_node_takes_up_is_missed_and_no_failure(office):
    made = await office.make(interval="1d", misfire_grace="30m")
    await office.fire(days=1)
    office.clock.advance(minutes=29)
    await office.node().settle_abandoned()
    assert await office.states() == ["running"]
    office.clock.advance(minutes=1)
    await office.node().settle_abandoned()
    [run] = await office.runs()
    assert (run["state"], run["cause"]) == ("missed", None)
    assert run["reason"] == "no node claimed the run by 2026-11-22T12:30:00.000Z"
    [session] = await office.sessions()
    assert (session["status"], session["error"]) == ("cancelled", run["reason"])
    assert (await office.load(made.id)).consecutive_failures == 0
    assert await office.told() == []
    assert await office.take_up() == []


async def test_a_run_that_a_node_has_taken_up_is_left_to_it(office):
    await office.make(interval="1d", misfire_grace="30m")
    await office.fire(days=1)
    [lease] = await office.take_up()
    office.clock.advance(hours=2)
    await office.node().settle_abandoned()
    assert await office.states() == ["running"]
    await office.end(lease, RunResult(report=REPORT))
    assert await office.states() == ["completed"]


async def test_a_run_that_cannot_be_settled_keeps_no_other_waiting(office):
    broken, well = await office.make("broken"), await office.make("well")
    await office.fire(hours=1)
    for session in await office.sessions():
        await office.database.write(cancel_session, session["id"], office.clock.now())

    def break_it(connection):
        row = update(schedules).where(schedules.c.id == broken.id)
        connection.execute(row.values(last_status="unheard-of"))

    await office.database.write(break_it)
    await office.node().settle_abandoned()
    assert await office.states(broken.id) == ["running"]
    assert await office.states(well.id) == ["cancelled"]


async def test_a_session_that_is_nobodys_run_is_not_settled(office):
    from tocsin.investigations import create_session
    from tocsin.model import Persona

    given = {"query": "look", "persona": Persona.ANALYST, "provider": None, "by": "ana"}
    await office.database.write(create_session, **given, now=NOW)
    await office.complete()
    assert (await office.told(), await office.runs()) == ([], [])


async def test_a_deleted_schedule_is_not_run_by_hand(office):
    made = await office.make()
    await office.do(delete_schedule, made.id)
    with pytest.raises(RequestError, match="deleted"):
        await office.do(lambda connection, held, now: run_now(connection, held, "a", now), made.id)
