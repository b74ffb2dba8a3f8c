"""Query plans of the search: an index scan with a limit."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, event, insert, text

from tocsin.knowledge.search import SearchDocument, search_documents, search_entities
from tocsin.knowledge.search.database_query import CandidateSearch
from tocsin.knowledge.search.documents import add_prefixes, block_token, index_documents
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
            text=f"something else number{number}",
            at=EPOCH,
        )
        for number in range(BATCH)
    ]


def strip_prefixes(connection: Connection, last: int) -> None:
    """Leave the documents up to the ID `last` as an earlier version stored them."""
    values = {"last": last}
    if connection.dialect.name == "postgresql":
        for statement in (
            "ALTER TABLE documents DISABLE TRIGGER documents_without_prefixes",
            "UPDATE documents SET tokens = ts_delete(tokens, ARRAY(SELECT lexeme FROM "
            "unnest(tokens) WHERE lexeme = '#prefixes' OR lexeme LIKE '#%/%')) WHERE id <= :last",
            "ALTER TABLE documents ENABLE TRIGGER documents_without_prefixes",
        ):
            connection.execute(text(statement), values if ":last" in statement else {})
    connection.execute(
        text("UPDATE sequences SET value = :last WHERE name = 'documents_without_prefixes'"), values
    )


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


WANTED = {
    "word": lambda n: n % 8 == 0,
    "wor*": lambda n: n % 8 == 0,
    '"else number7"*': lambda n: str(n).startswith("7"),
    'word -"else number7"*': lambda n: n % 8 == 0 and not str(n).startswith("7"),
}


def find_and_count(connection: Connection, query: str, top: int) -> tuple[list[str], int]:
    search = CandidateSearch(connection, parse_search_query(query))
    return [row["record"] for row in search.find(top, 250)], search.count(top)


@pytest.mark.parametrize("without_prefixes", [0, JUMPS[1], JUMPS[3]])
async def test_the_latest_matches_come_first_over_all_stretches(filled, without_prefixes):
    await filled.write(strip_prefixes, without_prefixes)
    for query, is_wanted in WANTED.items():
        expected = [str(first + n) for first in JUMPS for n in range(BATCH) if is_wanted(n)][::-1]
        for top in (JUMPS[-1] + BATCH, JUMPS[-1], JUMPS[2] + 1, 9_000):
            below = [record for record in expected if int(record) < top]
            assert await filled.read(find_and_count, query, top) == (below[:250], len(below))


async def test_a_prefix_is_searched_in_the_latest_blocks_first(filled):
    plan = await filled.read(
        lambda c: plans(c, lambda: CandidateSearch(c, parse_search_query("wor*")).find(301_000, 9))
    )
    if "VIRTUAL TABLE INDEX" not in plan:
        blocks = [block_token(block, "wor") for block in (301_000 >> 12, (301_000 >> 12) - 1)]
        assert all(f"''{block}'':*" in plan for block in blocks)
        assert "''wor'':*" in plan  # in the oldest documents


async def test_documents_without_prefixes_get_them_in_batches(filled):
    def load(connection: Connection) -> list[tuple]:
        return [tuple(row) for row in connection.execute(text("SELECT id, tokens FROM documents"))]

    before = sorted(await filled.read(load))
    await filled.write(strip_prefixes, JUMPS[3])
    while await filled.write(add_prefixes, 10_000):
        pass
    assert sorted(await filled.read(load)) == before
