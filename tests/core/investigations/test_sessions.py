"""Lists of sessions and of their steps."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import pytest
from sqlalchemy import Connection, event

from tocsin.investigations import list_sessions, list_steps, load_step
from tocsin.investigations.runs.lease import claim_runs, has_active_sessions
from tocsin.model import SessionStatus

URL = "https://tocsin.example.org"


async def test_the_newest_session_comes_first_and_pages_follow(start, database):
    ids = [await start(str(n)) for n in range(5)]
    first = await database.read(list_sessions, public_url=URL, limit=3)
    assert [session["id"] for session in first.sessions] == ids[:1:-1]
    assert (first.total, first.exact) == (5, True)
    rest = await database.read(list_sessions, public_url=URL, limit=3, before=first.next)
    assert [session["id"] for session in rest.sessions] == ids[1::-1]
    assert rest.next is None


async def test_sessions_are_narrowed_by_status_provider_and_schedule(start, finish, database):
    done = await start(provider="edge", schedule_id="sch_1")
    await finish()
    await start(provider="cloud")

    async def ids(**wanted) -> list[str]:
        page = await database.read(list_sessions, public_url=URL, limit=10, **wanted)
        assert page.total == len(page.sessions)
        return [session["id"] for session in page.sessions]

    assert await ids(status=SessionStatus.COMPLETED) == [done]
    assert await ids(provider="edge") == await ids(schedule_id="sch_1") == [done]
    assert await ids(provider="edge", status=SessionStatus.QUEUED) == []


async def test_the_ledger_is_read_in_pages_and_answers_one_by_one(start, finish, database):
    session_id = await start()
    await finish()
    page = await database.read(list_steps, session_id, limit=5)
    assert ([step["number"] for step in page.steps], page.total, page.next) == (
        [1, 2, 3, 4, 5],
        7,
        5,
    )
    assert page.steps[0]["question"] == {"text": "look", "limit": 20}
    assert page.steps[1]["conclusion"] == "it is about look"
    assert page.steps[1]["evidence"] == ["step:1"]
    rest = await database.read(list_steps, session_id, limit=5, after=page.next, run=1)
    assert ([step["number"] for step in rest.steps], rest.next) == ([6, 7], None)
    step = await database.read(load_step, session_id, 1)
    assert step["answer"][0]["title"] == "look"
    assert await database.read(load_step, session_id, 8) is None


def plan(connection: Connection, operation) -> list[str]:
    """Return the plan of every statement that an operation executes."""
    statements = []

    def note(_connection, _cursor, statement, parameters, _context, _many):
        statements.append((statement, parameters))

    event.listen(connection, "before_cursor_execute", note)
    try:
        operation(connection)
    finally:
        event.remove(connection, "before_cursor_execute", note)
    return [
        row[3]
        for statement, parameters in statements
        for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
    ]


NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
LIST = {"public_url": URL, "limit": 10}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("read", "index"),
    [
        (partial(has_active_sessions), "ix_sessions_status_id (status=?)"),
        (partial(claim_runs, node=1, most=4, now=NOW), "ix_sessions_status_id (status=?)"),
        (partial(list_sessions, **LIST, before="ses_2"), "(id<?)"),
        (partial(list_sessions, **LIST, status="queued"), "ix_sessions_status_id (status=?)"),
        (partial(list_sessions, **LIST, provider="edge"), "ix_sessions_provider_id (provider=?)"),
        (partial(list_steps, session_id="ses_1", limit=10), "(session_id=? AND number>?)"),
    ],
)
async def test_every_read_walks_an_index(database, read, index):
    steps = await database.read(plan, read)
    assert any(index in step for step in steps)
    assert not any(step.startswith("SCAN sessions") and "INDEX" not in step for step in steps)
