"""Takeover of a run from a node that was killed after any step."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import count

import pytest
from sqlalchemy import update

from tocsin.investigations import load_report
from tocsin.investigations.codec import decode_question, encode_answer, encode_question
from tocsin.investigations.runs.lease import RunLeaseLost, claim_runs
from tocsin.investigations.runs.recorder import LedgerChanges, store_changes
from tocsin.investigations.sessions.ledger import LedgerStep, append_steps, load_steps
from tocsin.model import Match, Phase, QueryOutcome, SearchHistory
from tocsin.store import Database
from tocsin.store.tables import session_steps

STEPS, QUESTIONS = 7, 5
MOST_QUESTIONS = 3  # that are written one after the other


class Dying(Database):
    """The database of a node that is killed at one of its writes, before it or after."""

    def __init__(self, database: Database, at: int, *, before: bool) -> None:
        self._database = database
        self._left = at
        self._before = before
        self.died = asyncio.Event()

    async def read(self, operation, *args, **kwargs):
        self._check()
        return await self._database.read(operation, *args, **kwargs)

    async def snapshot(self, operation, *args, **kwargs):
        return await self._database.snapshot(operation, *args, **kwargs)

    async def write(self, operation, *args, **kwargs):
        self._check()
        self._left -= 1
        if self._left == 0 and self._before:
            await self._die()
        result = await self._database.write(operation, *args, **kwargs)
        if self._left == 0:
            await self._die()
        return result

    def _check(self) -> None:
        if self.died.is_set():
            raise ConnectionError("this node is dead")

    async def _die(self) -> None:
        self.died.set()
        await asyncio.Event().wait()

    async def close(self) -> None:
        """Leave the true one open."""


@pytest.fixture
def die_at(make_node, database):
    async def die_at(write: int, *, before: bool = False) -> bool:
        """Have a node run until it is killed; return whether it came to that."""
        dying = Dying(database, write, before=before)
        return await live_and_die(make_node(2, database=dying), dying)

    return die_at


async def live_and_die(node, database: Dying) -> bool:
    """Return whether the node was killed, rather than done."""
    claiming = asyncio.create_task(node.claim())
    died = asyncio.create_task(database.died.wait())
    await asyncio.wait({claiming, died}, return_when=asyncio.FIRST_COMPLETED)
    tasks = {claiming, *node._tasks.values()}
    done = asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.wait({died, done}, return_when=asyncio.FIRST_COMPLETED)
    for task in (died, *tasks):
        task.cancel()
    await asyncio.gather(died, done, return_exceptions=True)
    return database.died.is_set()


@pytest.fixture
def whole(start, finish, session, ledger):
    """What an uninterrupted run comes to: its report and its ledger."""

    async def whole():
        session_id = await start()
        await finish()
        report = (await session(session_id))["report"]
        return report, await ledger(session_id)

    return whole


@pytest.fixture
def interrupted(start, die_at, finish, session, source):
    """A session that was interrupted at a write, and then done by another node."""

    async def interrupted(write: int, *, before: bool):
        session_id, source.asked = await start(), []
        was_killed = await die_at(write, before=before)
        await finish(number=3)
        return await session(session_id), was_killed

    return interrupted


@pytest.mark.parametrize("before", [True, False])
async def test_wherever_a_node_is_killed_another_comes_to_the_same(
    whole, interrupted, ledger, before
):
    report, steps = await whole()
    for write in count(1):
        row, was_killed = await interrupted(write, before=before)
        assert (row["status"], row["report"]) == ("completed", report)
        assert await ledger(row["id"]) == steps
        if not was_killed:
            break
    assert write > MOST_QUESTIONS


async def test_what_stands_in_the_ledger_is_not_asked_again(
    start, die_at, finish, source, database
):
    for write in range(1, 8):
        session_id, source.asked = await start(), []
        await die_at(write)
        kept = await database.read(load_steps, session_id)
        stored = [decode_question(step.kind, step.question) for step in kept if step.question]
        before, source.asked = source.asked, []
        await finish(number=3)
        assert not set(stored) & set(source.asked)
        assert len(stored) + len(source.asked) == QUESTIONS
        assert set(stored) <= set(before)


async def test_an_old_holder_writes_nothing_any_more(make_node, start, database, clock, rows):
    await start()
    [old] = await database.write(claim_runs, 1, 1, clock.now())
    [new] = await database.write(claim_runs, 2, 1, clock.now())
    step = LedgerStep(
        number=1, run=1, phase=Phase.GATHER, kind="x", started_at=clock.now(), elapsed_ms=0
    )
    with pytest.raises(RunLeaseLost):
        await database.write(store_changes, old, LedgerChanges((step,)))
    assert await rows(session_steps) == []
    await database.write(store_changes, new, LedgerChanges((step,)))
    assert len(await rows(session_steps)) == 1


async def test_an_investigator_that_goes_another_way_leaves_the_old_ledger(
    start, die_at, finish, source, database
):
    session_id = await start()
    await die_at(4)
    other = update(session_steps).where(session_steps.c.number == 2)
    await database.write(lambda c: c.execute(other.values(conclusion="something else")))
    await finish(number=3)
    steps = await database.read(load_steps, session_id)
    assert [step.number for step in steps] == list(range(1, STEPS + 1))
    assert steps[1].conclusion == "it is about look"
    assert sum(asked.asked_of == "provider:siem-0" for asked in source.asked) == 2


async def test_the_time_that_a_lost_node_took_counts(start, database, clock, begin, settle):
    session_id = await start(timeout=timedelta(seconds=60))
    first = LedgerStep(
        number=1,
        run=1,
        phase=Phase.GATHER,
        kind="matching",
        asked_of="search",
        question=encode_question(SearchHistory(text="look")),
        outcome=QueryOutcome.ANSWERED,
        answer=encode_answer("matching", (Match(kind="incident", id="7", title="", score=1.0),)),
        started_at=clock.now(),
        elapsed_ms=59_000,
    )
    await database.write(append_steps, session_id, [first])
    node = await begin()
    [attempt] = node._attempts.values()
    assert attempt.spent == timedelta(seconds=59)
    clock.advance(seconds=1)
    await settle(node)
    assert (await database.read(load_report, session_id)) is None


class Faltering(Dying):
    """A database that goes away at one of its writes, and comes back."""

    async def _die(self) -> None:
        self.died.set()
        raise ConnectionError("it is away")

    def come_back(self) -> None:
        self.died.clear()


async def test_a_database_that_was_away_fails_no_run(make_node, start, session, finish, database):
    session_id = await start()
    faltering = Faltering(database, 3, before=True)
    node = make_node(2, database=faltering)
    await finish(node)
    assert (await session(session_id))["status"] == "running"
    faltering.come_back()
    await node.keep()
    await finish(node)
    assert (await session(session_id))["status"] == "completed"
