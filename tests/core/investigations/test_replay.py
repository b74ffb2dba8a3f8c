"""Replays by the same investigator and by others."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import delete

from tocsin.errors import RequestError
from tocsin.investigations import ReplayResult, replay_session
from tocsin.investigations.sessions import load_steps, replace_steps
from tocsin.store.tables import session_steps

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture
async def session_id(start, send, finish):
    """A session of two runs."""
    session_id = await start()
    await finish()
    await send(session_id, "and?")
    await finish()
    return session_id


@pytest.fixture
def replay_it(database, investigator):
    return partial(replay_session, database, investigator=investigator)


@pytest.fixture
def change(database, session_id):
    async def change(number: int, **values) -> None:
        steps = await database.read(load_steps, session_id)
        changed = [replace(step, **values) if step.number == number else step for step in steps]
        await database.write(replace_steps, session_id, changed)

    return change


async def test_a_session_comes_to_the_same_again_and_asks_nobody(session_id, replay_it, source):
    asked = len(source.asked)
    replayed = await replay_it(session_id)
    assert (replayed.difference, replayed.report.title) == (None, "and? after look after ")
    assert len(source.asked) == asked


async def test_another_answer_makes_another_report(session_id, replay_it, change):
    await change(10, answer='{"events":[],"complete":true}')
    replayed = await replay_it(session_id)
    assert replayed.difference.startswith("report.findings[0].statements[0].text was ")


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        ((2, {"conclusion": "other"}), "run 1: step:2 is not the same conclusion"),
        ((8, {"question": '{"text":"other"}'}), "run 2: step:8 is not the same query"),
        ((9, {"evidence": ["step:1"]}), "run 2: step:9 is not the same conclusion"),
    ],
)
async def test_the_first_step_that_differs_is_named(
    session_id, replay_it, change, changed, difference
):
    number, values = changed
    await change(number, **values)
    assert (await replay_it(session_id)).difference.startswith(difference)


async def test_an_investigator_that_asks_more_or_less_differs(
    session_id, replay_it, database, investigator
):
    async def less(inquiry, client):
        await client.ask_all([])

    investigator.investigate = less
    replayed = await replay_it(session_id)
    assert replayed.difference == "run 1: step:1 is not repeated (search)"


async def test_a_ledger_that_lacks_a_step_of_a_run_that_completed_differs(
    session_id, replay_it, database, investigator
):
    gone = delete(session_steps).where(session_steps.c.number == 14)
    await database.write(lambda connection: connection.execute(gone))
    replayed = await replay_it(session_id)
    assert replayed.difference.startswith(
        "run 2: step:14 is not in the ledger: the investigator concludes"
    )


async def test_a_run_that_was_cut_off_is_repeated_as_far_as_it_came(
    start, begin, settle, cancel, replay_it
):
    session_id = await start()
    node = await begin()
    await cancel(session_id)
    await settle(node)
    assert await replay_it(session_id) == ReplayResult(None, None)


async def test_a_failure_is_the_same_again(start, replay_it, finish):
    session_id = await start("fail")
    await finish()
    assert (await replay_it(session_id)).is_same


async def test_what_is_under_way_or_unknown_is_not_repeated(start, database, investigator):
    with pytest.raises(RequestError, match="queued"):
        await replay_session(database, await start(), investigator)
    with pytest.raises(RequestError, match="no session"):
        await replay_session(database, "ses_0", investigator)
