"""Query language: valid queries, and errors with their positions."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import URL, make_url

from full_run import scale_examples
from tocsin.errors import InvalidInputError
from tocsin.knowledge.search import SearchDocument, search_documents
from tocsin.knowledge.search.documents import index_documents
from tocsin.knowledge.search.query import SearchTerm, parse_search_query
from tocsin.model import Entity, EntityKind
from tocsin.store import Database, open_database

WRONG = {
    "": "enter a query",
    "   ": "enter a query",
    '"abc': "q at character 1: the closing quotation mark is missing",
    'a "': "q at character 3: the closing quotation mark is missing",
    "a -": "q at character 3: a term is missing after '-'",
    "ab color:red": "q at character 4: unknown field 'color'; valid fields: kind, severity",
    "localhost:8080": "use quotation marks to search for it as text",
    "severity:worse": "severity must be one of: Informational, Low, Medium, High, Critical",
    "severity:": "q at character 1: a term is missing after 'severity:'",
    'severity:""': "a value is missing after severity:",
    "severity:hi*": "severity must be one of",
    "before:yesterday": "found 'yesterday'; use a day such as 2026-01-31",
    "before:2026-01-31T08:00:00": "with a time zone",
    "after:9999-99-99": "use a day",
    "-before:2026-01-31": "use before: instead of -after:",
    "OR a": "q at character 1: OR needs a term on both sides",
    "a OR": "OR needs a term on both sides",
    "a OR OR b": "OR needs a term on both sides",
    "a OR -b": "q at character 6: terms next to OR must not use",
    "a OR before:2026-01-31": "terms next to OR must not use",
    "po*": "at least 3 characters",
    "ip:1*": "at least 3 characters",
    "!!!": "q at character 1: '!!!' does not contain a word",
    "a\0b": "NUL",
    "a " * 40: "at most 32 terms",
    "x" * 1001: "at most 1000 characters",
    '"' + "w " * 40 + '"': "at most 32 words",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_said_with_its_place(text):
    with pytest.raises(InvalidInputError) as raised:
        parse_search_query(text)
    assert WRONG[text] in str(raised.value)


def test_terms_are_all_wanted_and_those_joined_by_or_any():
    query = parse_search_query('a "b c" OR ddd* -e SEVERITY:High')
    assert query.clauses == [
        [SearchTerm(("a",), whole="a")],
        [SearchTerm(("b", "c"), whole="b_c"), SearchTerm(("ddd",), prefix=True, whole="ddd")],
        [SearchTerm(("=severity:high",))],
    ]
    assert query.without == [SearchTerm(("e",), whole="e")]


def test_the_narrower_of_two_bounds_holds():
    query = parse_search_query(
        "after:2026-01-01 after:2026-02-01 before:2026-03-01 before:2026-04-01"
    )
    assert query.since == datetime(2026, 2, 1, tzinfo=UTC)
    assert query.until == datetime(2026, 3, 1, tzinfo=UTC)


_numbers = count()


@pytest.fixture(scope="module")
def both(postgres, migrated, migrated_file, tmp_path_factory) -> Iterator[tuple]:
    """Both databases with the same documents, and what runs their work."""
    copy = tmp_path_factory.mktemp("both") / "tocsin.db"
    copy.write_bytes(migrated_file.read_bytes())
    urls = (
        URL.create("sqlite", database=str(copy)),
        make_url(postgres.create(f"both_{next(_numbers)}", template=migrated)),
    )
    with asyncio.Runner() as runner:

        async def open_all() -> list[Database]:
            databases = [open_database(url) for url in urls]
            for database in databases:
                await database.write(index_documents, list(_documents()))
            return databases

        databases = runner.run(open_all())
        yield runner, databases
        for database in databases:
            runner.run(database.close())


WORDS = (
    "power",
    "powershell",
    "alpha",
    "ALPHA",
    "ß",
    "ς",
    "İ",
    "北京",
    "x-y",
    "a.b",
    "10.0.0.1",
    "'",
)


def _documents() -> Iterator[SearchDocument]:
    chance = random.Random(7)
    for number in range(300):
        yield SearchDocument(
            kind="incident" if number % 3 else "session",
            record=str(number),
            title=" ".join(chance.choices(WORDS, k=3)),
            text=" ".join(chance.choices(WORDS, k=8)),
            at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number % 40),
            facets={"severity": chance.choice(["Low", "High"]), "provider": "edge's"},
            entities=[Entity(EntityKind.USER, chance.choice(WORDS))],
        )


_pieces = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(
        [
            '"',
            "-",
            "*",
            ":",
            "OR",
            "NOT",
            "AND",
            "(",
            ")",
            "\\",
            "'",
            "|",
            "&",
            "!",
            "<->",
            "^",
            "+",
        ]
    ),
    st.sampled_from(
        [
            "severity:high",
            "user:x-y",
            "pow*",
            '"alpha pow"*',
            "before:2026-01-20",
            "kind:session",
            "span*",
            "sev*",
            "kin*",
        ]
    ),
    st.text(max_size=6),
)
_queries = st.one_of(
    st.text(max_size=40),
    st.tuples(st.lists(_pieces, max_size=8), st.sampled_from(["", " "])).map(
        lambda pair: pair[1].join(pair[0])
    ),
)


@settings(max_examples=scale_examples(150))
@given(text=_queries)
def test_any_text_finds_the_same_on_both_or_is_refused_by_both(both, text):
    runner, databases = both
    try:
        parse_search_query(text)
    except InvalidInputError as error:
        assert str(error)  # noqa: PT017
        return
    pages = [runner.run(database.read(search_documents, text, limit=200)) for database in databases]
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    "text",
    ["alpha", "pow* -alpha", '"alpha power" OR 10.0.0.1', "user:x-y severity:high", "x-y"],
)
def test_every_page_is_the_same_on_both(both, text):
    runner, databases = both
    lists = []
    for database in databases:
        pages, after = [], None
        while True:
            pages.append(runner.run(database.read(search_documents, text, limit=23, after=after)))
            if (after := pages[-1].next) is None:
                break
        lists.append(pages)
    assert lists[0] == lists[1]
    assert lists[0][0].results
