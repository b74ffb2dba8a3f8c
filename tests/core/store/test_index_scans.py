"""Rows that are found by their keys, without statistics about the table."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import DBAPIError

from incident_rows import add_incidents
from tocsin.store import force_index_scans, is_among, list_keys
from tocsin.store.tables import incidents

on_postgres = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
_i = incidents.c
NUMBERS = list_keys(_i.number, _i.provider, _i.external_id, "external_ids")
FOUND = select(_i.external_id).where(is_among(_i.number, NUMBERS)).order_by(_i.number)
COUNT = select(func.count()).select_from(NUMBERS.alias("found"))


async def test_rows_are_found_by_their_keys(database):
    def find(connection):
        add_incidents(connection, 3)
        known = connection.execute(select(_i.provider, _i.external_id).order_by(_i.number)).all()
        names = [name for _, name in known]
        wanted = [*names[1:], "", "~", names[0][:-1]]
        asked = {"provider": known[0].provider, "external_ids": wanted}
        found = connection.scalars(FOUND, asked).all()
        assert found == names[1:]
        assert connection.scalar(COUNT, asked) == len(found)
        assert connection.scalar(COUNT, {**asked, "provider": "another"}) == 0

    await database.write(find)


@on_postgres
async def test_the_plan_for_an_empty_table_reads_no_other_rows_of_the_provider(database):
    def explain(connection):
        connection.execute(text("SET LOCAL plan_cache_mode = force_generic_plan"))
        compiled = str(COUNT.compile(dialect=connection.dialect))
        connection.exec_driver_sql(f"PREPARE counting AS {compiled}")
        plan = connection.exec_driver_sql("EXPLAIN EXECUTE counting('siem', '{a,b}')").scalars()
        return "\n".join(plan)

    assert "uq_incidents_provider_external_id" in await database.write(explain)


@on_postgres
async def test_a_connection_that_closes_meanwhile_is_reported_as_such(database):
    @force_index_scans
    def close(connection):
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    with pytest.raises(DBAPIError) as closed:
        await database.read(close)
    assert closed.value.connection_invalidated
