"""Compressed steps of a ledger, and those from before they were compressed."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pytest
from sqlalchemy import func, insert, select

from tocsin.investigations.sessions import (
    LedgerStep,
    StepPacker,
    append_steps,
    drop_steps,
    list_steps,
    load_step,
    load_steps,
)
from tocsin.model import Phase, QueryOutcome
from tocsin.store.tables import session_steps

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
