"""Announcements between nodes of one PostgreSQL."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import Connection, event, text

from present_nodes import attending, until_heard
from tocsin.store import announce

pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


async def test_many_announcements_of_a_topic_share_a_few_notifications(migrated_url):
    async with attending(migrated_url, 7) as (node, _), attending(migrated_url, 8) as (_, heard):
        begin = asyncio.get_running_loop().time()
        for _ in range(40):
            await node.write(announce, "events")
        await node.write(announce, "the end")
        await until_heard(heard, "the end")
        intervals = (asyncio.get_running_loop().time() - begin) / 0.02
    assert heard["events"] <= min(intervals + 2, 39)


async def test_a_process_that_is_no_node_announces_at_once(database, migrated_url):
    async with attending(migrated_url, 7) as (_, heard):
        await database.write(announce, "events")
        await until_heard(heard, "events")


async def test_a_transaction_that_announces_commits_without_the_lock_of_notifications(
    database, migrated_url
):
    statements = []
    async with attending(migrated_url, 7) as (_, heard):
        engine = database._engine.sync_engine
        event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
        event.listen(engine, "commit", lambda _connection: statements.append("COMMIT"))
        await database.write(announce, "events")
        await until_heard(heard, "events")
    [*before, notification] = statements
    assert before[-1] == "COMMIT"
    assert not any("pg_notify" in statement for statement in before)
    assert "pg_notify" in notification


async def test_what_is_rolled_back_is_not_announced(database, migrated_url):
    def fail(connection: Connection) -> None:
        announce(connection, "never")
        connection.execute(text("SELECT 1"))
        raise ValueError

    async with attending(migrated_url, 7) as (_, heard):
        with pytest.raises(ValueError):
            await database.write(fail)
        await database.write(announce, "events")
        await until_heard(heard, "events")
    assert not heard["never"]
