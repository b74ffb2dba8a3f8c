"""Lists as one parameter, and updates of many rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from sqlalchemy import ColumnElement, Integer, Text, Update, insert, select, text, update
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError

from tocsin.delivery.queue import statements as queue
from tocsin.events import outbox
from tocsin.incidents.storage import store
from tocsin.knowledge.search import documents, indexer
from tocsin.store import BulkStatement, BulkUpdate
from tocsin.store.sqlite import make_engine
from tocsin.store.tables import EPOCH, derived_keys, events, metadata, sequences

LISTS = [
    outbox._STILL_UNROUTED,
    outbox._MARK_ROUTED,
    queue.SELECT_READY,
    queue.SELECT_CLAIMED,
    queue.SELECT_LEASES,
    queue.SELECT_SUBJECTS,
    queue.EXTEND,
    queue.RELEASE,
    store._STORED,
    store._ENTITIES,
    store._ALERTS,
    documents._known,
    indexer._entities,
    indexer._alerts,
    indexer._before,
]


async def test_a_list_is_looked_up_in_an_index_however_large_the_table_is(tmp_path):
    engine = make_engine(tmp_path / "plan.db")
    with engine.connect() as connection:
        metadata.create_all(connection)
        scanned = []
        for statement in LISTS:
            compiled = statement.compile(dialect=sqlite.dialect(paramstyle="named"))
            parameters = dict.fromkeys(compiled.params, 1)
            rows = connection.execute(text(f"EXPLAIN QUERY PLAN {compiled}"), parameters)
            steps = [row.detail for row in rows]
            scanned += [step for step in steps if "SCAN" in step and "json_each" not in step]
            if statement is store._STORED:  # not all of the provider
                assert any("external_id=?" in step for step in steps)
    engine.dispose()
    assert scanned == []


def _raise_value(new: Mapping[str, ColumnElement[Any]]) -> Update:
    return (
        update(sequences)
        .where(sequences.c.name == new["at_name"], sequences.c.value < new["to_value"])
        .values(value=new["to_value"])
    )


async def test_an_update_of_many_rows_records_and_returns_those_that_it_found(database):
    raising = BulkUpdate(
        _raise_value,
        {"at_name": Text(), "to_value": Integer()},
        sequences.c.name,
        derived_keys,
        {"purpose": "at_name", "content": "by"},
    )

    def run(connection):
        rows = [{"name": name, "value": 5} for name in ("a", "b", "c")]
        connection.execute(insert(sequences), rows)
        tried = [("a", 3, b"0"), ("a", 9, b"1"), ("b", 3, b"2"), ("c", 6, b"3"), ("d", 9, b"4")]
        found = raising.run(connection, tried)
        stored = select(sequences.c.name, sequences.c.value).where(
            sequences.c.name.in_(["a", "b", "c"])
        )
        recorded = connection.execute(select(derived_keys).order_by(derived_keys.c.purpose)).all()
        values = dict(connection.execute(stored).all())
        return found, values, [*map(tuple, recorded)], raising.run(connection, [])

    found, values, recorded, none = await database.write(run)
    assert (found, values) == ({1, 3}, {"a": 9, "b": 5, "c": 6})
    assert recorded == [("a", b"1"), ("c", b"3")]
    assert none == set()


EVENT = BulkStatement(
    insert(events),
    ("id", "subject", "event_type", "timestamp", "data", "related", "context", "routed"),
)


def build_row(number: int, **changes: Any) -> tuple[Any, ...]:
    row = {
        "id": f"evt_{number}",
        "subject": "incident:1",
        "event_type": "incident-alert",
        "timestamp": EPOCH,
        "data": {"title": "é'\"\\ {}", "number": number, "none": None},
        "related": ["a", "b, c"],
        "context": {},
        "routed": number % 2 == 0,
    }
    return tuple({**row, **changes}.values())


async def test_many_rows_are_inserted_as_they_are(database, monkeypatch):
    def load(connection):
        names = (events.c[name] for name in EVENT.names)
        return sorted(map(tuple, connection.execute(select(*names))))

    monkeypatch.setattr("tocsin.store.statements._SET", 4)
    await database.write(EVENT.run, map(build_row, range(9)))
    await database.write(EVENT.run, [])
    assert await database.read(load) == [build_row(number) for number in range(9)]


@pytest.mark.parametrize("count", [0, 3, 4, 9])
async def test_rows_of_one_statement_are_inserted_like_single_rows(database, count):
    together = BulkStatement(insert(events), EVENT.names, together=4)
    rows = [build_row(number) for number in range(count)]
    await database.write(together.run, rows)
    names = [events.c[name] for name in EVENT.names]
    stored = await database.read(lambda connection: connection.execute(select(*names)).all())
    assert sorted(map(tuple, stored)) == rows


async def test_a_text_that_is_too_long_for_its_column_is_refused_not_cut(database):
    if database.__class__.__name__ == "PostgresDatabase":
        with pytest.raises(DBAPIError, match="value too long"):
            await database.write(EVENT.run, [build_row(1, event_type="x" * 1_000)])
