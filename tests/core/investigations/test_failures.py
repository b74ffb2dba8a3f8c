"""Investigators that hang, exit or cite unknown evidence, and transient errors."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest
import structlog
from sqlalchemy import insert, update

from tocsin import Investigator, Tools
from tocsin.errors import ConflictError
from tocsin.investigations import (
    add_message,
    cancel_session,
    load_report,
    load_session,
    render_session,
)
from tocsin.investigations.runs.lease import claim_runs
from tocsin.investigations.runs.worker import MAX_ATTEMPTS, STOP_TIMEOUT
from tocsin.investigations.sessions.repository import MAX_FOLLOW_UPS
from tocsin.model import SearchHistory, Statement
from tocsin.store import Database
from tocsin.store.tables import session_steps, sessions

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
SHORT = timedelta(seconds=2)


class Obstinate(Investigator):
    """Does not stop before it is let go; a session that asks for nothing waits quietly."""

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.let_go = asyncio.Event()
        self.began = asyncio.Event()

    async def investigate(self, inquiry, client):
        self.began.set()
        if inquiry.messages[0] != "hold on":
            await asyncio.Event().wait()
        while not self.let_go.is_set():
            with suppress(asyncio.CancelledError):
                await self.let_go.wait()


@pytest.fixture
def make(clock):
    def make(kind) -> Investigator:
        tools = Tools(name="investigator", http=None, clock=clock, log=structlog.get_logger())
        return kind(kind.Settings(), tools)

    return make


@pytest.fixture
async def obstinate(make):
    obstinate = make(Obstinate)
    yield obstinate
    obstinate.let_go.set()


@pytest.fixture
def hold_on(make_node, obstinate, start):
    async def hold_on(**members):
        """Return a node whose investigator will not stop, and its session."""
        session_id = await start("hold on", timeout=SHORT)
        node = make_node(investigator=obstinate, **members)
        await node.claim()
        await obstinate.began.wait()
        return node, session_id

    return hold_on


async def pass_time(node, clock, duration) -> None:
    for _ in range(int(duration.total_seconds())):
        clock.advance(seconds=1)
        await node.keep()
        await asyncio.sleep(0)


async def kill(*tasks) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_that_is_slow_to_stop_costs_nobody_a_lease(
    hold_on, obstinate, start, session, clock
):
    node, _ = await hold_on()
    await pass_time(node, clock, SHORT)
    other = await start("wait")
    obstinate.began.clear()
    await node.claim()
    await obstinate.began.wait()
    before = (await session(other))["leased_until"]
    clock.advance(seconds=1)
    await node.keep()
    assert (await session(other))["leased_until"] > before
    obstinate.let_go.set()
    await kill(*node._tasks.values())


async def test_one_that_does_not_stop_is_left_to_itself(hold_on, obstinate, session, clock):
    node, session_id = await hold_on()
    [task] = node._tasks.values()
    await pass_time(node, clock, SHORT + STOP_TIMEOUT)
    row = await session(session_id)
    assert (row["status"], row["error"]) == ("failed", "not finished within 2 seconds")
    assert node._tasks == {}
    obstinate.let_go.set()
    await kill(task)
    assert (await session(session_id))["status"] == "failed"


async def test_one_that_does_not_stop_when_it_is_cancelled_is_left_to_itself(
    hold_on, obstinate, session, clock, cancel
):
    node, session_id = await hold_on()
    [task] = node._tasks.values()
    await cancel(session_id)
    await pass_time(node, clock, STOP_TIMEOUT + timedelta(seconds=1))
    assert ((await session(session_id))["status"], node._tasks) == ("cancelled", {})
    obstinate.let_go.set()
    await kill(task)


async def test_a_node_that_ends_does_not_wait_for_one_that_does_not_stop(
    hold_on, obstinate, session
):
    node, session_id = await hold_on(patience=timedelta(0))
    tasks = list(node._tasks.values())
    await node._finish()
    assert (await session(session_id))["status"] == "queued"
    obstinate.let_go.set()
    await kill(*tasks)


async def test_a_run_that_is_being_ended_is_not_renewed(start, finish, make_node):
    held = []
    await start()
    node = make_node(
        finishers=[lambda *_: held.extend(attempt.is_held for attempt in node._attempts.values())]
    )
    await finish(node)
    assert held == [False]


class Exits(Investigator):
    """Brings a library that ends the process."""

    async def investigate(self, inquiry, client):
        raise SystemExit("enough")


async def test_an_investigator_that_exits_costs_its_run_alone(start, session, finish, make):
    session_id = await start()
    await finish(investigator=make(Exits))
    assert (await session(session_id))["status"] == "failed"


@pytest.fixture
def citing(make, investigator):
    """An investigator that cites this as well; a follow-up asks nothing."""

    def citing(*evidence: str, text: str = "so") -> Investigator:
        class Citing(Investigator):
            async def investigate(self, inquiry, client):
                if inquiry.previous is not None:
                    report = inquiry.previous
                else:
                    await client.ask(SearchHistory(text="unrelated"))
                    report = await investigator.investigate(inquiry, client)
                gap = Statement(text, evidence)
                return replace(report, gaps=(gap,))

        return make(Citing)

    return citing


@pytest.mark.parametrize("reference", ["step:99", "step:0", "incident:8", "the log"])
async def test_a_report_that_cites_what_is_nowhere_fails_the_run(
    start, session, finish, citing, reference
):
    session_id = await start()
    await finish(investigator=citing("step:1", reference))
    row = await session(session_id)
    reason = f"the report cites evidence that is not in the ledger: {reference}"
    assert (row["status"], row["error"]) == ("failed", reason)


async def test_a_follow_up_cites_what_its_session_was_told_before(
    start, session, finish, citing, send
):
    session_id = await start()
    await finish(investigator=citing("step:8", "incident:7"))
    await send(session_id, "and?")
    await finish(investigator=citing("step:8", "incident:7"))
    assert (await session(session_id))["status"] == "completed"
    await send(session_id, "and?")
    await finish(investigator=citing("step:9"))
    error = (await session(session_id))["error"]
    assert error == "the report cites evidence that is not in the ledger: step:9"


async def test_text_that_is_no_text_is_stored_without_what_is_not(start, finish, citing, database):
    session_id = await start()
    await finish(investigator=citing("step:1", text="half a \ud800, and\0"))
    report = await database.read(load_report, session_id)
    assert report.gaps[0].text == "half a ?, and\N{REPLACEMENT CHARACTER}"


@pytest.fixture
def spoilt(start, finish, send, database):
    async def spoilt() -> str:
        """Return a session that waits to go on from a report that this version cannot read."""
        session_id = await start()
        await finish()
        await send(session_id, "and?")
        other = update(sessions).values(report={"title": "of another version"})
        await database.write(lambda c: c.execute(other))
        return session_id

    return spoilt


async def test_a_session_goes_on_without_a_report_that_cannot_be_read(spoilt, session, finish):
    session_id = await spoilt()
    await finish()
    row = await session(session_id)
    assert (row["status"], row["title"]) == ("completed", "and? after ")


async def test_a_session_whose_report_cannot_be_read_is_shown_and_cancelled(
    spoilt, session, cancel, database
):
    session_id = await spoilt()
    assert await database.read(load_report, session_id) is None
    loaded = await database.read(load_session, session_id, public_url="")
    assert render_session(loaded)["report"] is None
    await cancel(session_id)
    assert (await session(session_id))["status"] == "cancelled"


async def test_a_session_whose_ledger_cannot_be_read_fails_in_the_end(
    start, session, finish, database, clock
):
    session_id = await start()
    await finish(answer=away)
    strange = {"number": 1, "run": 1, "phase": "of another version", "kind": "x"}
    strange |= {"session_id": session_id, "started_at": clock.now(), "elapsed_ms": 0}
    strange |= {"duration_ms": 0}
    await database.write(lambda c: c.execute(insert(session_steps).values(strange)))
    for number in range(MAX_ATTEMPTS + 1):
        await finish(number=number)
    assert (await session(session_id))["status"] == "failed"


async def away(_):
    raise ConnectionError("the database is away")


async def test_trouble_with_the_database_is_not_counted_as_lost_nodes(
    make_node, start, session, finish
):
    session_id = await start()
    node = make_node(answer=away)
    for _ in range(MAX_ATTEMPTS + 1):
        await finish(node)
        await node.keep()
    row = await session(session_id)
    assert (row["status"], row["attempts"]) == ("queued", 0)


class Slow(Database):
    """One on which something else happens during each write."""

    def __init__(self, database, meanwhile) -> None:
        self._database = database
        self._meanwhile = meanwhile

    async def read(self, operation, *args, **kwargs):
        return await self._database.read(operation, *args, **kwargs)

    async def snapshot(self, operation, *args, **kwargs):
        return await self._database.snapshot(operation, *args, **kwargs)

    async def write(self, operation, *args, **kwargs):
        self._meanwhile()
        return await self._database.write(operation, *args, **kwargs)

    async def close(self) -> None:
        """Leave the true one open."""


async def test_what_is_to_be_given_back_meanwhile_is_not_forgotten(
    make_node, start, database, clock
):
    await start()
    await start()
    first, second = await database.write(claim_runs, 1, 2, clock.now())
    node = make_node(database=Slow(database, lambda: node._to_release.append(second)))
    node._to_release.append(first)
    await node.keep()
    assert node._to_release == [second]


async def test_a_clock_that_is_set_and_a_machine_that_sleeps_end_no_run(
    start, session, begin, clock
):
    session_id = await start(timeout=timedelta(minutes=1))
    node = await begin()
    [attempt] = node._attempts.values()
    for step in (timedelta(hours=8), timedelta(days=-1)):
        clock.advance(seconds=step.total_seconds())
        await node.keep()
    assert (await session(session_id))["status"] == "running"
    assert timedelta(0) < attempt.spent < timedelta(seconds=10)
    await kill(*node._tasks.values())


async def test_a_session_does_not_go_on_for_ever(start, finish, session, database, clock):
    session_id = await start()
    await finish()
    often = update(sessions).values(run=MAX_FOLLOW_UPS)
    await database.write(lambda c: c.execute(often))
    await database.write(add_message, session_id, "the last", "ana", clock.now())
    await database.write(cancel_session, session_id, clock.now())
    with pytest.raises(ConflictError, match="reached the maximum of 100 follow-ups"):
        await database.write(add_message, session_id, "one more", "ana", clock.now())
