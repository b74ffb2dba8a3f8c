"""Compressed steps of a ledger, and those from before they were compressed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import orjson
import pytest
from sqlalchemy import func, insert, select, update

from tocsin.clock import SystemClock
from tocsin.investigations import LedgerCompaction
from tocsin.investigations.sessions import (
    LedgerStep,
    StepPacker,
    append_steps,
    compact_steps,
    describe_steps,
    drop_steps,
    find_last_number,
    list_steps,
    load_step,
    load_steps,
)
from tocsin.model import Phase, QueryOutcome
from tocsin.store.tables import session_steps, sessions

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def step(number: int, kind: str = "incidents-about", **values) -> LedgerStep:
    incident = {"title": "Encoded PowerShell on WS-1", "text": " ".join(map(str, range(400)))}
    usual = {
        "question": f'{{"entity":"10.0.0.{number}"}}',
        "answer": orjson.dumps([{"number": number, **incident}]).decode(),
        "outcome": QueryOutcome.ANSWERED,
        "asked_of": "incidents",
    }
    given = {"run": 1, "phase": Phase.GATHER, "started_at": NOW, "elapsed_ms": number}
    return LedgerStep(number=number, kind=kind, **{**usual, **given, **values})


STEPS = [
    step(1),
    step(2, answer=None, outcome=QueryOutcome.UNAVAILABLE),
    step(3, "conclusion", question=None, answer=None, outcome=None, conclusion="It is bad."),
    step(4, answer='[{"title":"naïve \\\\n 📎"}]'),
    step(5, "neighbours-of"),
    step(6),
]


@pytest.fixture
async def session_id(start):
    return await start()


async def test_compressed_steps_read_the_same(database, session_id):
    await database.write(append_steps, session_id, STEPS)
    assert await database.read(load_steps, session_id) == STEPS
    listed = (await database.read(list_steps, session_id, limit=2, after=3)).steps
    assert [one["question"]["entity"] for one in listed] == ["10.0.0.4", "10.0.0.5"]
    alone = await database.read(load_step, session_id, 6)
    assert alone["answer"] == orjson.loads(STEPS[5].answer)


async def test_what_answers_have_in_common_is_stored_once(database, session_id):
    packer = StepPacker()
    for number in range(1, 51):
        await database.write(append_steps, session_id, [step(number)], packer)
    size = select(func.sum(func.length(session_steps.c.packed)))
    stored = (await database.read(lambda connection: connection.execute(size))).scalar_one()
    assert stored < len(step(1).answer) + 50 * 60


async def test_a_step_is_read_without_those_that_were_dropped_after_it(database, session_id):
    """A run that differs from its ledger deletes steps, and may store others in any order."""
    packer = StepPacker()
    await database.write(
        append_steps, session_id, [step(1, "a"), step(4), step(2), step(5)], packer
    )
    await database.write(drop_steps, session_id, 3)
    packer.drop_from(3)
    await database.write(append_steps, session_id, [step(3), step(4, "a")], packer)
    wanted = [step(1, "a"), step(2), step(3), step(4, "a")]
    assert await database.read(load_steps, session_id) == wanted


async def test_steps_from_before_compression_are_read(database, session_id):
    old = {name: getattr(STEPS[0], name) for name in LedgerStep.__dataclass_fields__}
    row = {**old, "session_id": session_id}
    await database.write(lambda c: c.execute(insert(session_steps).values(row)))
    await database.write(append_steps, session_id, [STEPS[5]])
    assert await database.read(load_steps, session_id) == [STEPS[0], STEPS[5]]
    [first, _] = (await database.read(list_steps, session_id, limit=5)).steps
    assert first["question"] == {"entity": "10.0.0.1"}
    assert (await database.read(load_step, session_id, 1))["answer"][0]["number"] == 1


MANY = [
    replace(
        STEPS[number % 6],
        number=number,
        question=STEPS[number % 6].question and f'{{"numbers":[{number}]}}',
        run=1 + number // 200,
        reason="half of it" if number % 7 == 0 else None,
        evidence=("step:1", "incident:4711") if number % 6 == 2 else None,
        started_at=NOW + timedelta(microseconds=number),
    )
    for number in range(1, 301)
]


async def read_all(database, session_id):
    """Return everything that readers can see of a ledger."""
    numbers = [1, 127, 128, 129, 199, 200, 300, 301]
    return {
        "steps": await database.read(load_steps, session_id),
        "runs": [await database.read(load_steps, session_id, run) for run in (1, 2, 3)],
        "pages": [
            await database.read(list_steps, session_id, limit=limit, after=after, run=run)
            for limit, after, run in [(50, 0, None), (200, 101, None), (50, 250, 2), (10, 300, 1)]
        ],
        "single": [await database.read(load_step, session_id, number) for number in numbers],
        "described": await database.read(describe_steps, session_id),
    }


async def store_many(database, session_id):
    for run in (1, 2):
        steps = [step for step in MANY if step.run == run]
        await database.write(append_steps, session_id, steps, StepPacker())


async def end_session(database, session_id, status="completed"):
    ended = update(sessions).where(sessions.c.id == session_id).values(status=status)
    await database.write(lambda connection: connection.execute(ended) and None)


async def test_readers_see_the_same_before_and_after_each_chunk(database, session_id):
    await store_many(database, session_id)
    before = await read_all(database, session_id)
    assert before["steps"] == MANY
    assert before["pages"][0].total == 300
    chunks = 0
    while await database.write(compact_steps, session_id):
        chunks += 1
        assert await read_all(database, session_id) == before
    assert chunks == 3  # two of run 1, one of run 2
    stored = select(func.count(), func.sum(func.length(session_steps.c.chunk)))
    [(rows, size)] = await database.read(lambda connection: connection.execute(stored).all())
    assert rows == chunks
    assert size < len(STEPS[0].answer) + 300 * 20


async def test_ledgers_are_compacted_when_their_sessions_have_ended(database, session_id):
    """Those of nodes that stopped, and from before there was compaction, at the next start."""
    count = select(func.count()).select_from(session_steps)

    async def rows():
        return await database.read(lambda connection: connection.scalar(count))

    await store_many(database, session_id)
    await LedgerCompaction(database, SystemClock()).compact_all()
    assert await rows() == 300
    await end_session(database, session_id)
    await LedgerCompaction(database, SystemClock()).compact_all()
    assert await rows() == 3
    assert await database.read(load_steps, session_id) == MANY


async def test_a_session_is_compacted_when_its_run_has_ended(database, session_id):
    compaction = LedgerCompaction(database, SystemClock())
    compaction._examine_at += timedelta(hours=1)
    running = asyncio.create_task(compaction.run())
    await store_many(database, session_id)
    await end_session(database, session_id)
    compaction.finish(None, SimpleNamespace(session_id=session_id))()
    single = select(func.count()).where(session_steps.c.chunk.is_(None))
    async with asyncio.timeout(20):
        while await database.read(lambda c: c.scalar(single)):  # noqa: ASYNC110 - of another task
            await asyncio.sleep(0.01)
    running.cancel()
    assert await database.read(load_steps, session_id) == MANY
    assert await database.read(find_last_number, session_id, 2) == 199


async def test_large_answers_share_no_chunk(database, session_id):
    large = [step(number, answer=orjson.dumps("x" * 400_000).decode()) for number in (1, 2, 3)]
    await database.write(append_steps, session_id, large)
    while await database.write(compact_steps, session_id):
        pass
    count = select(session_steps.c.steps).order_by(session_steps.c.number)
    assert (await database.read(lambda c: c.scalars(count).all())) == [1, 1, 1]
    assert await database.read(load_steps, session_id) == large
