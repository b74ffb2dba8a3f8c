"""The tables from before partitions become the first partition, without being rewritten."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection, text

from delivery_rows import add_delivery, rows
from tocsin.delivery import DeliveryQueue, list_deliveries, load_delivery
from tocsin.identifiers import first_id
from tocsin.store import Database, list_months, open_database, parse_url, start_of_month, upgrade
from tocsin.store.schema import create_schema
from tocsin.store.tables import attempts, deliveries

TABLES = ("events", "deliveries", "attempts")
FILES = text(
    "SELECT c.oid, pg_relation_filenode(c.oid) FROM pg_class c LEFT JOIN pg_index i "
    "ON i.indexrelid = c.oid WHERE coalesce(i.indrelid, c.oid) = ANY (CAST(:tables AS oid[]))"
)
OIDS = text("SELECT to_regclass(name)::oid FROM unnest(CAST(:names AS text[])) AS name")


@pytest.fixture
def name(tmp_path) -> str:
    return f"adopted_{tmp_path.name}"[:60]


@pytest.fixture
async def old(postgres_url) -> AsyncIterator[Database]:
    database = open_database(parse_url(postgres_url))
    await database.write(create_schema, "0040")
    yield database
    await database.close()


@pytest.fixture
def postgres_url(postgres, name) -> str:
    return postgres.create(name)


async def test_rows_are_adopted_where_they_are(old):
    ids = [await old.write(add_delivery, state) for state in ("dead", "pending", "delivered")]
    before = await old.read(rows)
    oids = await old.read(lambda c: c.scalars(OIDS, {"names": list(TABLES)}).all())
    files = set(await old.read(lambda c: c.execute(FILES, {"tables": oids}).all()))
    assert len(files) == 3 + 4 + 6 + 1
    await upgrade(old)
    assert await old.read(rows) == before
    assert set(await old.read(lambda c: c.execute(FILES, {"tables": oids}).all())) == files
    shown = await old.read(load_delivery, ids[0])
    assert shown is not None
    assert len(shown["attempts"]) == 1
    [first, *_] = await old.read(list_months)
    now = datetime.now(UTC)
    assert first.end in {start_of_month(now, 2), start_of_month(now - timedelta(minutes=5), 2)}


@pytest.mark.full
async def test_an_upgrade_that_was_interrupted_goes_on(old):
    await old.write(add_delivery)
    for revision in ("0041", "0042"):
        await old.write(create_schema, revision)
        await old.write(add_delivery)
    await upgrade(old)
    assert (await old.read(list_deliveries)).total == 3


@pytest.mark.full
async def test_what_was_granted_is_still(old):
    role = "tocsin_adoption_reader"

    def grant(connection: Connection) -> None:
        connection.execute(text(f"CREATE ROLE {role}"))
        connection.execute(text(f"GRANT SELECT ON events, deliveries, attempts TO {role}"))
        connection.execute(text(f"GRANT UPDATE ON events TO {role} WITH GRANT OPTION"))

    def list_rights(connection: Connection) -> list[tuple[str, ...]]:
        query = text(
            "SELECT table_name, privilege_type, is_grantable "
            "FROM information_schema.table_privileges"
            f" WHERE grantee = '{role}' ORDER BY 1, 2"
        )
        return [tuple(row) for row in connection.execute(query)]

    await old.write(grant)
    before = await old.read(list_rights)
    try:
        await upgrade(old)
        after = await old.read(list_rights)
        assert [row for row in after if row[0] in TABLES] == before
        assert ("attempts_other", "SELECT", "NO") in after
    finally:
        drop = text(f"DROP OWNED BY {role}")
        await old.write(lambda connection: connection.execute(drop) and None)
        await old.write(lambda connection: connection.execute(text(f"DROP ROLE {role}")) and None)


@pytest.mark.full
async def test_a_row_of_the_far_future_is_named_and_stops_the_upgrade(old):
    later = first_id("dlv", datetime.now(UTC) + timedelta(days=400))
    await old.write(add_delivery, id=later)
    with pytest.raises(Exception, match=f"found the ID {later}"):
        await upgrade(old)
    await old.write(lambda c: c.execute(attempts.delete()) and None)
    await old.write(lambda c: c.execute(deliveries.delete()) and None)
    await upgrade(old)
    assert await old.read(list_months)


@pytest.mark.full
async def test_a_node_of_the_version_before_works_with_it(old, clock):
    """Its statements are the same; its deliveries have IDs of the time of routing."""
    await upgrade(old)
    await old.write(add_delivery, "pending", due_at=clock.now())
    [claimed] = await DeliveryQueue(old).claim("soc", 10, clock.now())
    assert claimed.attempt == 2
