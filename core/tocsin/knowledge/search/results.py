"""Ranked search results over incidents and sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, bindparam, select

from tocsin.errors import InvalidInputError
from tocsin.knowledge.search import tokens
from tocsin.knowledge.search.database_query import (
    MAX_COUNT,
    CandidateSearch,
    find_newest_id,
)
from tocsin.knowledge.search.fields import KINDS
from tocsin.knowledge.search.query import ParsedQuery, SearchTerm, parse_search_query
from tocsin.knowledge.search.snippets import SnippetPart, build_snippet
from tocsin.store.tables import documents

RANKED_DOCUMENTS = 200
"""Number of matches that are ranked together, the latest first."""
IN_TITLE = 3
OWN_ENTITY = 2
IN_TEXT = 1


@dataclass(frozen=True, slots=True)
class SearchPosition:
    """Start of the next page: among the matches up to `top`, after `shown` of the ranked ones."""

    newest: int
    """The latest document when the first page was read, where the list begins."""
    top: int
    shown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentHit:
    """A matching document."""

    kind: str
    """`incident` or `session`."""
    id: str
    """The incident's number, or the session's ID."""
    title: str
    snippet: tuple[SnippetPart, ...]
    """Plain text in parts; `render_snippet` makes it safe to show."""
    score: float
    """From 0 to 1."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """One page of results."""

    results: tuple[DocumentHit, ...]
    total: int
    """Number of matches on all pages."""
    exact: bool
    """False if there are more than `total`."""
    next: SearchPosition | None
    """Start of the next page, None on the last page."""


def search_documents(
    connection: Connection,
    text: str,
    *,
    limit: int,
    after: SearchPosition | None = None,
    kinds: Sequence[str] | None = None,
) -> SearchPage:
    """Return the documents that match the text, the best of the latest first.

    The latest 200 matches are ranked, then the 200 before them, and so on, so that the cost of a
    search does not grow with the number of matches. Raises InvalidInputError for an invalid query,
    with the position of the error.
    """
    query = parse_search_query(text)
    if kinds is not None:
        query.only(_check_kinds(kinds))
    at = after or _find_first_position(connection)
    search = CandidateSearch(connection, query)
    found = search.find(at.top, RANKED_DOCUMENTS + 1)
    ranked = rank_documents(query, found[:RANKED_DOCUMENTS])
    page = ranked[at.shown : at.shown + limit]
    is_all = at.top == at.newest and len(found) <= RANKED_DOCUMENTS
    total = len(found) if is_all else search.count(at.newest)
    return SearchPage(
        results=_build_results(connection, query, page),
        total=min(total, MAX_COUNT),
        exact=total <= MAX_COUNT,
        next=_next(at, found, at.shown + limit),
    )


def _find_first_position(connection: Connection) -> SearchPosition:
    latest = find_newest_id(connection)
    return SearchPosition(latest, latest, 0)


def _check_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    for kind in kinds:
        if kind not in KINDS:
            raise InvalidInputError(f"kind: found {kind!r}; use one of: {', '.join(KINDS)}")
    return tuple(kinds)


def _next(at: SearchPosition, found: Sequence[RowMapping], shown: int) -> SearchPosition | None:
    if shown < min(len(found), RANKED_DOCUMENTS):
        return SearchPosition(at.newest, at.top, shown)
    return (
        SearchPosition(at.newest, found[RANKED_DOCUMENTS]["id"], 0)
        if len(found) > RANKED_DOCUMENTS
        else None
    )


def _build_results(
    connection: Connection, query: ParsedQuery, page: Sequence[tuple[float, RowMapping]]
) -> tuple[DocumentHit, ...]:
    texts = _load_texts(connection, [row["id"] for _, row in page])
    return tuple(
        DocumentHit(
            kind=row["kind"],
            id=row["record"],
            title=row["title"],
            snippet=build_snippet(query, texts.get(row["id"], "")),
            score=score,
            at=row["at"],
        )
        for score, row in page
    )


_text_of = select(documents.c.id, documents.c.text).where(
    documents.c.id.in_(bindparam("ids", expanding=True))
)


def _load_texts(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    rows = connection.execute(_text_of, {"ids": ids}) if ids else ()
    return {row.id: row.text for row in rows}


def rank_documents(
    query: ParsedQuery, found: Sequence[RowMapping]
) -> list[tuple[float, RowMapping]]:
    """Return the documents with their scores, the best first.

    A term counts 3 in the title, 2 as an entity of the document, and 1 in its text; of terms joined
    by OR, the best counts. The score is the sum divided by its maximum, from 0 to 1. Filters do not
    count, and a query with only filters scores 1. Equal scores are ordered by time, the latest
    first.
    """
    clauses = [clause for clause in query.clauses if any(term.whole for term in clause)]
    scored = [(_score(clauses, row), row) for row in found]
    scored.sort(key=lambda pair: (pair[0], pair[1]["at"], pair[1]["id"]), reverse=True)
    return scored


def _score(clauses: list[list[SearchTerm]], row: RowMapping) -> float:
    if not clauses:
        return 1.0
    title = f" {' '.join(tokens.split_words(tokens.fold_text(row['title'])))} "
    entities = f" {row['entities']} "
    reached = sum(max(_score_term(term, title, entities) for term in clause) for clause in clauses)
    return round(reached / (IN_TITLE * len(clauses)), 3)


def _score_term(term: SearchTerm, title: str, entities: str) -> int:
    if _is_in_title(term, title):
        return IN_TITLE
    return OWN_ENTITY if term.whole and _fits(term, term.whole, entities) else IN_TEXT


def _is_in_title(term: SearchTerm, title: str) -> bool:
    words = (
        tokens.split_words(term.whole) if len(term.tokens) == 1 and not term.prefix else term.tokens
    )
    return _fits(term, " ".join(words), title)


def _fits(term: SearchTerm, wanted: str, text: str) -> bool:
    return f" {wanted}" in text if term.prefix else f" {wanted} " in text
