"""Query plans of the search: an index scan with a limit."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, event, insert, text

from tocsin.knowledge.search import SearchDocument, search_documents, search_entities
from tocsin.knowledge.search.candidates import count_candidates, find_candidates
from tocsin.knowledge.search.documents import index_documents
from tocsin.knowledge.search.query import parse_search_query
from tocsin.store.tables import EPOCH, entity_names

JUMPS = (0, 9_000, 40_000, 300_000)
"""The first id of each of the batches, so that they lie in stretches of different sizes."""
BATCH = 800


def documents_of(first: int) -> list[SearchDocument]:
    """Return documents of which every eighth has the word."""
    return [
        SearchDocument(
            kind="incident",
            record=str(first + number),
            title="" if number % 8 else "word",
            text=f"something else {number}",
            at=EPOCH,
        )
        for number in range(BATCH)
    ]


def fill(connection: Connection) -> None:
    for first in JUMPS:
        jump = text("UPDATE sequences SET value = :first WHERE name = 'document_id'")
        connection.execute(jump, {"first": first})
        index_documents(connection, documents_of(first))
    names = [{"name": f"name{n}", "part": 0, "kind": "ip", "value": str(n)} for n in range(5_000)]
    connection.execute(insert(entity_names), names)
    connection.execute(text("ANALYZE"))


def plans(connection: Connection, operation) -> str:
    """Return how each statement of an operation is run."""
    seen = []

    def note(_connection, _cursor, statement, parameters, *_rest) -> None:
        if not statement.startswith("EXPLAIN"):
            seen.append((statement, parameters))

    event.listen(connection, "before_cursor_execute", note)
    operation()
    event.remove(connection, "before_cursor_execute", note)
    how = "EXPLAIN QUERY PLAN" if connection.dialect.name == "sqlite" else "EXPLAIN"
    return "\n".join(
        str(row[-1])
        for statement, parameters in seen
        for row in connection.exec_driver_sql(f"{how} {statement}", parameters)
    )


@pytest.fixture
async def filled(database):
    await database.write(fill)
    return database


async def test_a_search_asks_the_index_of_tokens(filled):
    for query in ("word", "word kind:incident", "word before:2026-01-01", "wor*"):
        plan = await filled.read(
            lambda c, query=query: plans(c, lambda: search_documents(c, query, limit=9))
        )
        assert "VIRTUAL TABLE INDEX" in plan or "Index Scan on ix_documents_tokens" in plan
        for slow in ("SCAN documents\n", "Seq Scan on documents", "Backward", "TEMP B-TREE"):
            assert slow not in plan, (query, slow)


async def test_looking_up_entities_walks_their_names(filled):
    plan = await filled.read(lambda c: plans(c, lambda: search_entities(c, "name12", limit=10)))
    assert "SCAN entity_names\n" not in plan
    assert "Seq Scan on entity_names" not in plan


async def test_the_latest_matches_come_first_over_all_stretches(filled):
    expected = [str(first + n) for first in JUMPS for n in range(0, BATCH, 8)][::-1]
    for top in (JUMPS[-1] + BATCH, JUMPS[-1], JUMPS[2] + 1, 9_000):
        below = [record for record in expected if int(record) < top]
        found = await filled.read(find_candidates, parse_search_query("word"), top, 250)
        assert [row["record"] for row in found] == below[:250]
        assert await filled.read(count_candidates, parse_search_query("word"), top) == len(below)
