"""Both databases keep the same promises."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import structlog
from sqlalchemy import Connection, func, insert, inspect, select, text
from sqlalchemy.exc import SQLAlchemyError

from tocsin.errors import OperatorError
from tocsin.store import (
    INCIDENT_NUMBER,
    PARTITIONED,
    DatabaseReplaced,
    allot_numbers,
    check_schema,
    open_database,
    parse_url,
    upgrade,
)
from tocsin.store.postgres import PostgresDatabase
from tocsin.store.tables import metadata, quarantine


def add(connection: Connection, reason: str) -> None:
    from datetime import UTC, datetime

    row = dict.fromkeys(("provider", "stream", "source", "location"), "x")
    connection.execute(
        insert(quarantine).values(
            **row, reason=reason, content=b"", created_at=datetime(2026, 1, 1, tzinfo=UTC)
        )
    )


def reasons(connection: Connection) -> list[str]:
    return list(connection.scalars(select(quarantine.c.reason).order_by(quarantine.c.id)))


def fail_after_adding(connection: Connection, reason: str) -> None:
    add(connection, reason)
    raise ValueError(reason)


async def test_what_was_written_can_be_read(database):
    await database.write(add, "one")
    assert await database.read(reasons) == ["one"]


async def test_nothing_remains_of_a_write_that_raises(database):
    with pytest.raises(ValueError, match="two"):
        await database.write(fail_after_adding, "two")
    assert await database.read(reasons) == []


async def test_a_failing_write_does_not_disturb_those_beside_it(database):
    writes = [database.write(fail_after_adding if n % 3 == 0 else add, str(n)) for n in range(30)]
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert sum(isinstance(result, ValueError) for result in results) == 10
    assert sorted(map(int, await database.read(reasons))) == [n for n in range(30) if n % 3]


async def test_moments_come_back_as_they_went(database):
    await database.write(add, "moment")
    [moment] = await database.read(lambda c: list(c.scalars(select(quarantine.c.created_at))))
    assert moment.isoformat() == "2026-01-01T00:00:00+00:00"


async def test_a_sequence_is_allotted_without_gaps_or_doubles(database):
    ranges = await asyncio.gather(
        *(database.write(allot_numbers, INCIDENT_NUMBER, 3) for _ in range(20))
    )
    assert sorted(n for allotted in ranges for n in allotted) == list(range(1, 61))


async def test_a_rolled_back_allotment_leaves_no_gap(database):
    def allot_and_fail(connection: Connection) -> None:
        allot_numbers(connection, INCIDENT_NUMBER, 5)
        raise ValueError

    with pytest.raises(ValueError):
        await database.write(allot_and_fail)
    assert list(await database.write(allot_numbers, INCIDENT_NUMBER, 1)) == [1]


async def test_the_migrations_make_the_schema_of_the_tables(database):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    def is_of_both(item: Any, name: str | None, kind: str, *_more: object) -> bool:
        """Return whether both databases have it: indexes of text and partitions are their own."""
        table = item if kind == "table" else getattr(item, "table", None)
        if getattr(table, "name", "").startswith(("events_", "deliveries_", "attempts_")):
            return False
        is_partitioned = getattr(table, "name", "") in PARTITIONED
        if is_partitioned and kind in ("foreign_key_constraint", "unique_constraint"):
            return not isinstance(database, PostgresDatabase)
        return not (name or "").startswith(("documents_index", "ix_documents_tokens"))

    def differences(connection: Connection) -> list[object]:
        options = {"include_object": is_of_both}
        return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)

    assert await database.write(differences) == []


async def test_partial_indexes_are_there(database):
    def names(connection: Connection) -> set[str | None]:
        return {index["name"] for index in inspect(connection).get_indexes("deliveries")}

    assert "ix_deliveries_due" in await database.write(names)


async def test_an_old_schema_is_refused_with_the_command_that_mends_it(tmp_path):
    database = open_database(parse_url(f"sqlite:///{tmp_path}/new.db"))
    with pytest.raises(OperatorError, match="tocsin db upgrade"):
        await check_schema(database)
    await upgrade(database)
    await check_schema(database)
    await database.close()


@pytest.mark.parametrize("use", [upgrade, check_schema])
async def test_a_schema_of_a_newer_version_is_refused_with_what_helps(database, use):
    def be_newer(connection: Connection) -> None:
        connection.execute(text("UPDATE alembic_version SET version_num = '0099'"))
        entry = "name = 'schema_compatible_with'"
        connection.execute(text(f"UPDATE sequences SET value = 99 WHERE {entry}"))

    await database.write(be_newer)
    with pytest.raises(OperatorError, match=r"revision 0099, which .* restore a backup") as caught:
        await use(database)
    assert "tocsin db upgrade" not in str(caught.value)


async def test_upgrading_twice_changes_nothing(database):
    await database.write(add, "kept")
    await upgrade(database)
    assert await database.read(reasons) == ["kept"]


async def test_closing_finishes_what_was_asked(database_url):
    database = open_database(database_url)
    await upgrade(database)
    writes = [asyncio.ensure_future(database.write(add, str(n))) for n in range(50)]
    await asyncio.sleep(0)
    await database.close()
    await asyncio.gather(*writes)
    again = open_database(database_url)
    count = select(func.count()).select_from(quarantine)
    assert await again.read(lambda c: c.scalar(count)) == 50
    await again.close()


def fill_the_disk(connection: Connection) -> None:
    connection.exec_driver_sql("CREATE TABLE big (content BLOB)")
    connection.exec_driver_sql("INSERT INTO big VALUES (zeroblob(50000000))")


async def test_a_full_disk_costs_only_the_write_that_fills_it(tmp_path):
    database = open_database(parse_url(f"sqlite:///{tmp_path}/small.db"))
    await upgrade(database)
    await database.write(lambda c: c.exec_driver_sql("PRAGMA max_page_count = 500").close())
    writes = [
        database.write(fill_the_disk if n == 5 else add, *([str(n)] if n != 5 else []))
        for n in range(10)
    ]
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert ["database or disk is full" in str(result) for result in results].index(True) == 5
    assert await database.read(reasons) == [str(n) for n in range(10) if n != 5]
    await database.close()


async def test_nothing_remains_where_a_database_error_was_swallowed(tmp_path):
    def swallow(connection: Connection) -> None:
        with contextlib.suppress(SQLAlchemyError):
            fill_the_disk(connection)
        add(connection, "in no transaction")

    database = open_database(parse_url(f"sqlite:///{tmp_path}/small.db"))
    await upgrade(database)
    await database.write(lambda c: c.exec_driver_sql("PRAGMA max_page_count = 500").close())
    with pytest.raises(Exception, match="rolled back"):
        await database.write(swallow)
    await database.write(add, "kept")
    await database.close()


@pytest.mark.parametrize("content", [b"this is not a database" * 100, None])
async def test_a_file_that_is_no_database_is_refused_at_once(tmp_path, content):
    path = tmp_path / "tocsin.db"
    path.mkdir() if content is None else path.write_bytes(content)
    database = open_database(parse_url(f"sqlite:///{path}"))
    with pytest.raises(OperatorError, match="TOCSIN_DATABASE_URL"):
        await upgrade(database)
    await database.close()


async def test_a_write_after_the_end_is_an_error_and_no_wait(tmp_path):
    database = open_database(parse_url(f"sqlite:///{tmp_path}/tocsin.db"))
    await database.close()
    with pytest.raises(RuntimeError, match="closed"):
        await database.write(add, "late")


async def test_stop_iteration_harms_nobody_else(database):
    def stop(connection: Connection) -> None:
        raise StopIteration

    results = await asyncio.gather(
        database.write(stop), database.write(add, "kept"), return_exceptions=True
    )
    assert isinstance(results[0], RuntimeError)
    assert await database.read(reasons) == ["kept"]


async def test_a_connection_that_was_cut_costs_no_read(database_url, database):
    if database_url.get_backend_name() == "sqlite":
        pytest.skip("there is no server to cut it")
    assert await database.read(reasons) == []
    outside = await asyncpg.connect(database_url.render_as_string(hide_password=False))
    await outside.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )
    await outside.close()
    assert await database.read(reasons) == []


@pytest.mark.parametrize("query", ["sslmode=disable", "sslmode=prefer"])
async def test_libpqs_parameters_are_understood(database_url, query):
    if database_url.get_backend_name() == "sqlite":
        pytest.skip("only PostgreSQL takes parameters")
    database = open_database(database_url.update_query_string(query))
    assert await database.read(reasons) == []
    await database.close()


def test_an_unknown_parameter_is_named():
    with pytest.raises(OperatorError, match="unknown parameter sslmoed"):
        open_database(parse_url("postgresql://u:p@h/d?sslmoed=require"))


@pytest.mark.parametrize(
    "url", ["nonsense", "mysql://x/y", "sqlite://", "sqlite:///:memory:", "http://[bad"]
)
def test_a_url_of_another_kind_is_refused_by_its_setting(url):
    with pytest.raises(OperatorError, match="TOCSIN_DATABASE_URL"):
        parse_url(url)


@pytest.mark.parametrize(("times", "ends_well"), [(2, True), (3, False)])
@pytest.mark.parametrize("code", ["40P01", "40001"])
async def test_what_another_transaction_was_in_the_way_of_is_done_again(
    database, code, times, ends_well
):
    if not isinstance(database, PostgresDatabase):
        pytest.skip("nothing is in the way of SQLite's one writer")
    tries = 0

    def write(connection: Connection) -> None:
        nonlocal tries
        tries += 1
        add(connection, "once")
        if tries <= times:
            raising = f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{code}'; END $$"
            connection.exec_driver_sql(raising)

    with contextlib.nullcontext() if ends_well else pytest.raises(SQLAlchemyError):
        await database.write(write)
    assert tries == 3
    assert await database.read(reasons) == (["once"] if ends_well else [])


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("suffix", ["", "-wal"])
@pytest.mark.parametrize("replaced", [False, True])
async def test_a_file_that_is_removed_or_replaced_is_noticed(
    database, migrated_url, suffix, replaced
):
    await database.write(add, "one")
    database.check_identity()
    take_away(Path(f"{migrated_url.database}{suffix}"), replaced=replaced)
    with pytest.raises(DatabaseReplaced, match="removed or replaced while in use"):
        database.check_identity()


def take_away(path: Path, *, replaced: bool) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    path.unlink()
    if replaced:
        copy.rename(path)


async def test_a_database_that_is_created_is_announced(database_url):
    database = open_database(database_url)
    with structlog.testing.capture_logs() as logs:
        await database.write(empty_it)
        await upgrade(database)
        await upgrade(database)
    await database.close()
    assert [line["event"] for line in logs] == ["database created; it is empty"]


def empty_it(connection: Connection) -> None:
    """Leave nothing, as where somebody has created a database and no more."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
