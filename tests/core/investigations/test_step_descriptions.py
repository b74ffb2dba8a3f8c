"""Descriptions of ledger steps."""

from __future__ import annotations

import pytest

from session_rows import add_session
from tocsin.investigations import describe_steps
from tocsin.investigations.sessions.ledger import LedgerStep, append_steps
from tocsin.model import Phase, QueryOutcome
from tocsin.testing import ManualClock

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def question(number: int, kind: str, asked_of: str, asked: str, **given) -> LedgerStep:
    return LedgerStep(
        number=number,
        run=1,
        phase=Phase.GATHER,
        kind=kind,
        asked_of=asked_of,
        question=asked,
        started_at=ManualClock().now(),
        elapsed_ms=0,
        **{"outcome": QueryOutcome.ANSWERED, **given},
    )


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (
            ("events-of", "provider:edge", '{"entity": {"kind": "ip", "value": "192.0.2.1"}}'),
            "Searched provider edge for events that involve 192.0.2.1",
        ),
        (
            ("incidents-numbered", "incidents", '{"numbers": [1, 2]}'),
            "Looked up incidents by number: 1, 2",
        ),
        (
            ("entities-like", "entities", '{"pattern": "web-*"}'),
            "Searched for entities that match web-*",
        ),
        (
            ("matching", "search", '{"text": "brute force"}'),
            "Searched stored incidents and sessions for 'brute force'",
        ),
        (
            (
                "enrichments-of",
                "enricher:history",
                '{"entities": [{"value": "a"}, {"value": "b"}, {"value": "c"}, {"value": "d"}]}',
            ),
            "Asked enricher history about a, b, c and 1 more",
        ),
    ],
)
async def test_a_question_says_who_was_asked_for_what(database, step, words):
    session_id = await database.write(add_session)
    await database.write(append_steps, session_id, [question(3, *step)])
    assert words in (await database.read(describe_steps, session_id))["step:3"]


async def test_a_question_that_was_not_answered_says_why(database):
    session_id = await database.write(add_session)
    away = {"outcome": QueryOutcome.UNAVAILABLE, "reason": "it is busy"}
    step = question(3, "events-of", "provider:edge", '{"entity": {"value": "a"}}', **away)
    await database.write(append_steps, session_id, [step])
    descriptions = await database.read(describe_steps, session_id)
    said = "Searched provider edge for events that involve a: unavailable (it is busy)"
    assert descriptions["step:3"] == said
    assert descriptions["step:2"] == "Concluded: The risk score is 78."
