"""What the queue in the database does beyond the promises of every queue."""

from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.dialects import sqlite

from present_nodes import attending, until_heard
from tocsin.delivery.queue.queue import DeliveryQueue
from tocsin.delivery.queue.statements import SELECT_DUE
from tocsin.events import emit_events
from tocsin.store.sqlite import make_engine
from tocsin.store.tables import metadata

from .conftest import alert


async def offer(database, clock, *events) -> None:
    await database.write(emit_events, events)
    wanted = [(event, "soc") for event in events]
    await database.write(DeliveryQueue(database).offer, wanted, clock.now())


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_on_sqlite_whoever_starts_takes_over_what_its_predecessor_held(database, clock):
    await offer(database, clock, alert(1), alert(2))
    await DeliveryQueue(database, 7).claim("soc", 10, clock.now())
    successor = DeliveryQueue(database, 8)
    assert await successor.take_over(clock.now(), certain=True) == 2
    assert len(await successor.claim("soc", 10, clock.now())) == 2


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_what_a_node_holds_is_taken_over_once_it_is_gone(database, migrated_url, clock):
    await offer(database, clock, alert(1), alert(2))
    other = DeliveryQueue(database, 8)
    async with attending(migrated_url, 7) as (node, _):
        held = await DeliveryQueue(node, 7).claim("soc", 1, clock.now())
        assert [await other.take_over(clock.now()) for _ in range(3)] == [0, 0, 0]
    assert [await other.take_over(clock.now()) for _ in range(3)] == [0, 1, 0]
    [first, _] = await other.claim("soc", 10, clock.now())
    assert first.id == held[0].id


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
async def test_a_node_hears_what_another_announces(database, migrated_url, clock):
    async with attending(migrated_url, 7) as (_, heard):
        await offer(database, clock, alert())
        await until_heard(heard, "events")
        await until_heard(heard, "queued:soc")


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (SELECT_DUE[False, False], "ix_deliveries_due (destination=? AND due_at<?)"),
        (SELECT_DUE[True, False], "ix_deliveries_due (destination=? AND due_at<?)"),
        (SELECT_DUE[True, False], "ix_deliveries_waiting (destination=? AND subject=?)"),
        (SELECT_DUE[False, True], "ix_deliveries_due (destination=?)"),
        (SELECT_DUE[True, True], "ix_deliveries_due (destination=?)"),
    ],
)
async def test_a_claim_walks_the_indexes_of_what_waits(tmp_path, statement, index):
    engine = make_engine(tmp_path / "plan.db")
    with engine.connect() as connection:
        metadata.create_all(connection)
        compiled = statement.compile(dialect=sqlite.dialect(paramstyle="named"))
        rows = connection.execute(
            text(f"EXPLAIN QUERY PLAN {compiled}"), dict.fromkeys(compiled.params, 1)
        )
        steps = " | ".join(row.detail for row in rows)
    engine.dispose()
    assert index in steps
    assert "TEMP B-TREE" not in steps
