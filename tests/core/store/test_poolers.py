"""Tocsin behind a real PgBouncer: in session mode it works, in others it says what is wrong."""

from __future__ import annotations

import asyncio

import pytest

from pgbouncer import WHY_NOT, pooling
from tocsin.errors import OperatorError
from tocsin.store import (
    INCIDENT_NUMBER,
    allot_numbers,
    announce,
    check_schema,
    find_missing_limits,
    open_database,
)

pytestmark = [
    pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT)),
    pytest.mark.parametrize("database_url", ["postgresql"], indirect=True),
]


@pytest.fixture
def pooled_url(request, tmp_path, migrated_url):
    server = request.getfixturevalue("postgres")
    with pooling(tmp_path, server, migrated_url, request.param) as pooler:
        yield pooler.url


@pytest.fixture
async def pooled(pooled_url):
    database = open_database(pooled_url)
    yield database
    await database.close()


@pytest.mark.parametrize("pooled_url", ["session"], indirect=True)
async def test_session_mode_works_with_all_limits(pooled):
    await pooled.require_sessions()
    await check_schema(pooled)
    assert await pooled.write(find_missing_limits) == []
    heard = asyncio.Queue()
    attending = asyncio.create_task(pooled.attend(7, heard.put_nowait))
    await heard.get()
    await pooled.write(announce, "changes")
    assert await heard.get() == "changes"
    assert await pooled.write(allot_numbers, INCIDENT_NUMBER, 1)
    attending.cancel()
    await asyncio.wait([attending])


@pytest.mark.parametrize("pooled_url", ["transaction", "statement"], indirect=True)
async def test_other_modes_are_refused_with_what_would_be_right(pooled, monkeypatch):
    monkeypatch.setattr("tocsin.store.postgres._NOTIFICATION_SECONDS", 0.2)
    with pytest.raises(OperatorError, match="pool_mode = session"):
        await pooled.require_sessions()
