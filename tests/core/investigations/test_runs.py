"""Runs of a session, from its query to its report."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from tocsin.errors import NotFoundError
from tocsin.investigations import (
    InvestigationMetrics,
    SessionBusyError,
    add_message,
    cancel_session,
    load_report,
    load_session,
    render_session,
)
from tocsin.investigations.runs.worker import MAX_ATTEMPTS, NOT_STORED
from tocsin.metrics import Metrics
from tocsin.store.tables import session_messages, session_steps


def load(connection, session_id):
    found = load_session(connection, session_id, public_url="https://tocsin.example.org")
    return found and render_session(found)


async def test_a_session_is_investigated_and_its_report_can_be_read(start, database, finish):
    session_id = await start()
    await finish()
    shown = await database.read(load, session_id)
    assert (shown["status"], shown["error"]) == ("completed", None)
    assert (shown["risk_score"], shown["entity_count"], shown["finding_count"]) == (70.0, 2, 1)
    assert shown["progress"] == {"phase": "report", "steps": 7, "asked": 5}
    assert [message["role"] for message in shown["messages"]] == ["user", "investigator"]
    assert "It is bad" in shown["report"]
    assert shown["url"] == f"https://tocsin.example.org/investigations/{session_id}"
    report = await database.read(load_report, session_id)
    assert report.title == "look after "


async def test_every_question_is_a_row_with_its_answer(start, ledger, finish):
    session_id = await start()
    await finish()
    rows = await ledger(session_id)
    assert [row["number"] for row in rows] == list(range(1, 8))
    assert [row["kind"] for row in rows].count("conclusion") == 2
    assert rows[0]["asked_of"] == "search"
    assert "\\u0000" not in rows[2]["answer"]


async def test_a_provider_that_is_away_is_an_answer_and_no_failure(start, database, source, finish):
    source.away = {"provider:siem-1"}
    session_id = await start()
    await finish()
    report = await database.read(load_report, session_id)
    assert [gap.text for gap in report.gaps] == ["it is away"]


async def test_an_investigation_that_comes_to_nothing_says_why(start, session, finish):
    session_id = await start("fail")
    await finish()
    row = await session(session_id)
    assert (row["status"], row["error"]) == ("failed", "incident 404 does not exist")


async def test_what_a_bug_says_is_not_shown(start, session, finish):
    session_id = await start("break")
    await finish()
    row = await session(session_id)
    assert row["status"] == "failed"
    assert "secret" not in row["error"]


async def test_a_run_that_takes_too_long_fails(start, session, begin, settle, clock):
    session_id = await start(timeout=timedelta(seconds=5))
    node = await begin()
    clock.advance(seconds=5)
    await settle(node)
    row = await session(session_id)
    assert (row["status"], row["error"]) == ("failed", "not finished within 5 seconds")


async def test_a_session_that_is_cancelled_stops_on_its_node(start, session, begin, settle, cancel):
    session_id = await start()
    node = await begin()
    await cancel(session_id)
    await settle(node)
    row = await session(session_id)
    assert (row["status"], row["report"], node._tasks) == ("cancelled", None, {})


async def test_a_session_that_has_ended_is_not_cancelled(start, session, cancel, finish):
    session_id = await start()
    await finish()
    await cancel(session_id)
    assert (await session(session_id))["status"] == "completed"


async def test_a_follow_up_runs_again_and_knows_what_was_found(start, session, rows, finish, send):
    session_id = await start()
    await finish()
    await send(session_id, "and then?")
    await finish()
    row = await session(session_id)
    assert (row["status"], row["run"]) == ("completed", 2)
    assert row["title"] == "and then? after look after "
    steps = await rows(session_steps)
    assert [step["number"] for step in steps if step["run"] == 2] == list(range(8, 15))
    assert [row["run"] for row in await rows(session_messages)] == [1, 1, 2, 2]


async def test_the_last_report_is_there_while_a_session_runs_again(start, finish, send, database):
    session_id = await start()
    await finish()
    await send(session_id, "and then?")
    waiting = await database.read(load, session_id)
    assert (waiting["status"], waiting["title"]) == ("queued", "look after ")
    assert waiting["report"]


async def test_a_session_under_way_takes_no_message(start, database, clock):
    session_id = await start()
    with pytest.raises(SessionBusyError, match="is queued"):
        await database.write(add_message, session_id, "and?", "ana", clock.now())


async def test_there_is_nothing_to_do_with_an_unknown_session(database, clock):
    for change in (add_message, cancel_session):
        arguments = ("ses_0", "and?", "ana") if change is add_message else ("ses_0",)
        with pytest.raises(NotFoundError):
            await database.write(change, *arguments, clock.now())
    assert await database.read(load, "ses_0") is None


async def test_a_run_that_is_lost_with_every_node_fails(start, session, begin, finish):
    session_id = await start()
    for number in range(1, MAX_ATTEMPTS + 1):
        await kill(await begin(number))
    await finish(number=99)
    row = await session(session_id)
    assert row["status"] == "failed"
    assert row["error"] == "5 nodes in a row failed during this run"


async def kill(node) -> None:
    for task in list(node._tasks.values()):
        task.cancel()
    await asyncio.gather(*node._tasks.values(), return_exceptions=True)


async def test_what_a_node_gives_back_is_taken_up_at_once_and_does_not_count(
    make_node, start, session, source, finish
):
    source.gate = asyncio.Event()
    session_id = await start()
    node = make_node()
    running = asyncio.create_task(node.run())
    await source.entered.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    row = await session(session_id)
    assert (row["status"], row["attempts"], row["lease"]) == ("queued", 0, None)
    source.gate = None
    await finish(number=2)
    assert (await session(session_id))["status"] == "completed"


async def test_no_more_are_run_at_once_than_there_is_room_for(make_node, start, source):
    source.gate = asyncio.Event()
    for _ in range(3):
        await start()
    node = make_node(at_once=2)
    await node.claim()
    await node.claim()
    assert len(node._tasks) == 2
    await kill(node)


async def test_nobody_waits_behind_all_that_another_has_asked_for(start, session, finish):
    first = await start(by="bob")
    for _ in range(3):
        await start(by="bob")
    last = await start(by="ana")
    await finish(at_once=2)
    assert [(await session(number))["status"] for number in (first, last)] == ["completed"] * 2


async def test_finishers_are_part_of_the_end(start, finish):
    ends = []
    await start(schedule_id="sch_1")
    await start("fail")
    await finish(finishers=[lambda _, ended: ends.append(ended)])
    done, failed = sorted(ends, key=lambda ended: ended.result.status)
    assert (done.schedule_id, done.run, done.result.status) == ("sch_1", 1, "completed")
    assert (failed.schedule_id, failed.result.report) == (None, None)
    assert (done.result.report.risk_score, sorted(done.result.relations)) == (70.0, [3, 4, 5])


async def test_a_report_that_cannot_be_stored_fails_the_run(start, session, finish):
    def refuse(_, ended):
        if ended.result.report is not None:
            raise ValueError("no")

    session_id = await start()
    with capture_logs() as logged:
        await finish(finishers=[refuse])
    assert [entry["event"] for entry in logged if entry["log_level"] == "error"] == [
        "report not stored"
    ]
    row = await session(session_id)
    assert (row["status"], row["error"], row["report"]) == ("failed", NOT_STORED.reason, None)


async def test_what_is_investigated_is_counted(start, finish, source, clock):
    metrics = Metrics(clock)
    source.away = {"provider:siem-1"}
    await start()
    await start("fail")
    await finish(meter=InvestigationMetrics(metrics))
    exposed = (await metrics.expose()).decode()
    for line in (
        'tocsin_investigations_total{status="completed"} 1.0',
        'tocsin_investigations_total{status="failed"} 1.0',
        'tocsin_investigation_duration_seconds_count{status="completed"} 1.0',
        'tocsin_investigation_steps_total{outcome="answered",source="search"} 2.0',
        'tocsin_investigation_steps_total{outcome="unavailable",source="provider:siem-1"} 1.0',
    ):
        assert line in exposed
