"""Tocsin behind a real PgBouncer: in session mode, and in transaction mode with another URL."""

from __future__ import annotations

import asyncio
import os

import asyncpg
import pytest
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError

from certificates import Authority
from pgbouncer import WHY_NOT, pooling
from postgres import USER
from tocsin.errors import OperatorError
from tocsin.store import (
    INCIDENT_NUMBER,
    DatabaseFailure,
    allot_numbers,
    announce,
    check_schema,
    find_missing_limits,
    open_database,
    parse_url,
)
from tocsin.store.driver_queries import DriverQuery
from tocsin.store.session_limits import SESSION_LIMITS
from tocsin.store.tables import sequences

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


@pytest.fixture
async def give_role():
    """Gives the role its limits, or takes them; sessions that are open keep what they had."""

    async def give(url, limits) -> None:
        connection = await asyncpg.connect(url.render_as_string(hide_password=False))
        start = f"ALTER ROLE {USER} IN DATABASE {url.database}"
        await connection.execute(f"{start} RESET ALL")
        for name, value in limits.items():
            await connection.execute(f"{start} SET {name} = {value}")
        await connection.close()

    return give


async def test_transaction_mode_works_with_a_url_for_sessions(
    tmp_path, postgres, migrated_url, give_role
):
    await give_role(migrated_url, SESSION_LIMITS)
    settings = {"default_pool_size": "2"}  # so that transactions change places
    with pooling(tmp_path, postgres, migrated_url, "transaction", **settings) as pooler:
        database = open_database(pooler.url, migrated_url)
        try:
            await database.require_sessions()
            await check_schema(database)
            assert await database.read(find_missing_limits) == []
            heard = asyncio.Queue()
            attending = asyncio.create_task(database.attend(7, heard.put_nowait))
            await heard.get()
            await asyncio.gather(*(store(database) for _ in range(40)))
            assert await heard.get() == "changes"
            query = DriverQuery(select(sequences.c.value).where(sequences.c.name == "x"), ())
            assert await database.fetch_row(query, ()) is None
            assert await database.snapshot(count_numbers) == 40
            attending.cancel()
            await asyncio.wait([attending])
        finally:
            await database.close()
            await give_role(migrated_url, {})


async def store(database) -> None:
    def allot(connection) -> None:
        allot_numbers(connection, INCIDENT_NUMBER, 1)
        announce(connection, "changes")

    await database.write(allot)
    await database.read(count_numbers)


def count_numbers(connection) -> int:
    return connection.scalar(select(sequences.c.value).where(sequences.c.name == INCIDENT_NUMBER))


@pytest.mark.parametrize("pooled_url", ["transaction"], indirect=True)
async def test_missing_limits_of_the_role_are_named_as_statements(pooled_url, migrated_url):
    database = open_database(pooled_url, migrated_url)
    expected = f"ALTER ROLE {USER} IN DATABASE shared SET lock_timeout = 15000;"
    with pytest.raises(OperatorError, match=expected) as refused:
        await database.require_sessions()
    assert "tcp_" not in str(refused.value)  # the pooler's own connections are not ours
    await database.close()


@pytest.mark.parametrize("pooled_url", ["transaction"], indirect=True)
async def test_a_session_url_with_shared_sessions_is_refused(pooled_url, monkeypatch):
    monkeypatch.setattr("tocsin.store.postgres._NOTIFICATION_SECONDS", 0.2)
    database = open_database(pooled_url, pooled_url)
    with pytest.raises(OperatorError, match="TOCSIN_DATABASE_SESSION_URL: found a connection"):
        await database.require_sessions()
    await database.close()


async def test_a_session_url_of_another_database_is_refused(postgres, migrated_url, monkeypatch):
    monkeypatch.setattr("tocsin.store.postgres._NOTIFICATION_SECONDS", 0.2)
    database = open_database(migrated_url, migrated_url.set(database="postgres"))
    with pytest.raises(OperatorError, match="different database"):
        await database.require_sessions()
    await database.close()


@pytest.mark.full
async def test_certificates_are_verified_as_the_url_says(tmp_path, postgres, migrated_url):
    folder = postgres.folder  # where the pooler's user may read
    authority, other = Authority(folder), Authority(folder, "Other")
    certificate, key = authority.issue_apart("127.0.0.1")
    for path in (certificate, key):
        os.chmod(path, 0o644)  # noqa: PTH101 - nothing waits for it
    tls = {
        "client_tls_sslmode": "require",
        "client_tls_cert_file": certificate,
        "client_tls_key_file": key,
    }
    with pooling(tmp_path, postgres, migrated_url, "session", **tls) as pooler:
        url = pooler.url.render_as_string(hide_password=False)
        for query, works in [
            (f"sslmode=verify-full&sslrootcert={authority.file}", True),
            (f"sslmode=verify-full&sslrootcert={other.file}", False),
            ("sslmode=require", True),
            ("sslmode=disable", False),
        ]:
            database = open_database(parse_url(f"{url}?{query}"))
            if works:
                assert await database.read(find_missing_limits) == []
            else:
                with pytest.raises((DatabaseFailure, DBAPIError)):
                    await database.read(find_missing_limits)
            await database.close()
