"""Searching incidents and sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, bindparam, select

from tocsin.errors import CallerError
from tocsin.knowledge.search.candidates import (
    MAX_COUNT,
    count_candidates,
    find_candidates,
    find_newest_id,
)
from tocsin.knowledge.search.fields import KINDS
from tocsin.knowledge.search.query import ParsedQuery, parse_search_query
from tocsin.knowledge.search.ranking import rank_documents
from tocsin.knowledge.search.snippets import SnippetPart, build_snippet
from tocsin.store.tables import documents

RANKED_DOCUMENTS = 200
"""So many matches at a time are ranked among each other, the latest first."""


@dataclass(frozen=True, slots=True)
class SearchPosition:
    """Where the next page begins: among the matches up to `top`, after `shown` of the ranked."""

    newest: int
    """The document that was the latest when the first page was read; the list begins there."""
    top: int
    shown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentHit:
    """One document that matches."""

    kind: str
    """`incident` or `session`."""
    id: str
    """The incident's number, or the session's id."""
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
    """How many there are that match, on all pages."""
    exact: bool
    """False where there are more than `total`."""
    next: SearchPosition | None
    """Where more follows, None at the end."""


def search_documents(
    connection: Connection,
    text: str,
    *,
    limit: int,
    after: SearchPosition | None = None,
    kinds: Sequence[str] | None = None,
) -> SearchPage:
    """Return what matches the text, the best of the latest first.

    The latest 200 matches are ranked, then the 200 before them, and so on, so that a search costs
    the same however much there is to find. Raises CallerError (422) for a query that cannot be
    understood, and says where.
    """
    query = parse_search_query(text)
    if kinds is not None:
        query.only(_check_kinds(kinds))
    at = after or _first_position(connection)
    found = find_candidates(connection, query, at.top, RANKED_DOCUMENTS + 1)
    ranked = rank_documents(query, found[:RANKED_DOCUMENTS])
    page = ranked[at.shown : at.shown + limit]
    is_all = at.top == at.newest and len(found) <= RANKED_DOCUMENTS
    total = len(found) if is_all else count_candidates(connection, query, at.newest)
    return SearchPage(
        results=_build_results(connection, query, page),
        total=min(total, MAX_COUNT),
        exact=total <= MAX_COUNT,
        next=_next(at, found, at.shown + limit),
    )


def _first_position(connection: Connection) -> SearchPosition:
    latest = find_newest_id(connection)
    return SearchPosition(latest, latest, 0)


def _check_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    for kind in kinds:
        if kind not in KINDS:
            raise CallerError(422, f"kind: found {kind!r}; give one of: {', '.join(KINDS)}")
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
    texts = _texts(connection, [row["id"] for _, row in page])
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


def _texts(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    rows = connection.execute(_text_of, {"ids": ids}) if ids else ()
    return {row.id: row.text for row in rows}
