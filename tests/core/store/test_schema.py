"""Nodes of two versions share a database, and an upgrade runs once, step by step."""

from __future__ import annotations

import asyncio
import re
import secrets
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import structlog
from sqlalchemy import URL, Connection, make_url, text

from tocsin.errors import OperatorError
from tocsin.store import (
    check_schema,
    create_schema,
    get_newest_revision,
    open_database,
    plan_upgrade,
    upgrade,
)
from tocsin.store import schema as schema_module
from tocsin.store.schema import _list_migrations

BEFORE = "0017"
MIGRATIONS = sorted(
    Path(schema_module.__file__).parent.glob("migrations/versions/r*.py"), key=lambda p: p.name
)


@pytest.fixture(params=["sqlite", "postgresql"])
def old_url(request, tmp_path) -> URL:
    if request.param == "sqlite":
        return URL.create("sqlite", database=str(tmp_path / "old.db"))
    return make_url(request.getfixturevalue("postgres").create(f"old_{secrets.token_hex(8)}"))


async def test_upgrades_at_the_same_time_run_each_migration_once(old_url):
    first, second = open_database(old_url), open_database(old_url)
    await first.write(create_schema, BEFORE)
    with pytest.raises(OperatorError, match="run `tocsin db upgrade`"):
        await check_schema(first)
    pending = await first.read(plan_upgrade)
    assert next(migration.revision for migration in pending) == "0018"
    with structlog.testing.capture_logs() as logs:
        done = await asyncio.gather(upgrade(first), upgrade(second))
    assert sorted([*done[0], *done[1]], key=lambda step: step.revision) == pending
    lines = [line for line in logs if line["event"] == "schema upgraded"]
    assert [line["revision"] for line in lines] == [step.revision for step in pending]
    assert await upgrade(first) == []
    await check_schema(second)
    for database in (first, second):
        await database.close()


async def test_a_newer_schema_is_refused_unless_it_is_compatible(database):
    newest = get_newest_revision()

    def be_newer(connection: Connection, compatible_with: str) -> None:
        connection.execute(text("UPDATE alembic_version SET version_num = '9000'"))
        value = {"value": int(compatible_with)}
        change = "UPDATE sequences SET value = :value WHERE name = 'schema_compatible_with'"
        assert connection.execute(text(change), value).rowcount == 1

    await database.write(be_newer, newest)
    await check_schema(database)
    assert await database.read(plan_upgrade) == []
    with pytest.raises(OperatorError, match="would omit newer data"):
        await check_schema(database, is_exact=True)
    await database.write(be_newer, f"{int(newest) + 1:04}")
    with pytest.raises(OperatorError, match="Install the version that upgraded the database"):
        await check_schema(database)


async def test_a_sqlite_file_is_copied_before_its_upgrade(tmp_path):
    file = tmp_path / "tocsin.db"
    database = open_database(URL.create("sqlite", database=str(file)))
    await database.write(create_schema, BEFORE)
    await upgrade(database, file)
    await database.close()
    copy = file.with_name("tocsin.db.before-upgrade")
    assert copy.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(copy)) as copied:
        assert copied.execute("SELECT version_num FROM alembic_version").fetchall() == [(BEFORE,)]


def test_every_migration_says_which_nodes_work_with_it():
    oldest = [migration.compatible_with for migration in _list_migrations()]
    assert oldest == sorted(oldest)
    assert all(step.compatible_with <= step.revision for step in _list_migrations())
    for path in MIGRATIONS:
        content = path.read_text()
        if "compatible_with" in content:
            assert "odes of" in content.split('"""')[1], path.name


def test_new_migrations_fill_no_large_table_in_one_transaction():
    rewrites = re.compile(r"\b(UPDATE (?!api_keys)\w+ SET|INSERT INTO \w+[^)]*\) SELECT)")
    found = {path.name: rewrites.findall(path.read_text()) for path in MIGRATIONS[18:]}
    # nodes fill them in batches, as `DocumentRebuild` does
    assert {name: statements for name, statements in found.items() if statements} == {}
