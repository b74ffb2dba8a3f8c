"""Searching incidents and sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, bindparam, select

from tocsin.errors import CallerError
from tocsin.knowledge.search.candidates import COUNTED, count, find, newest
from tocsin.knowledge.search.fields import KINDS
from tocsin.knowledge.search.query import Query, parse
from tocsin.knowledge.search.ranking import rank
from tocsin.knowledge.search.snippets import Part, snippet
from tocsin.store.tables import documents

RANKED = 200
"""So many matches at a time are ranked among each other, the latest first."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where the next page begins: among the matches up to `top`, after `shown` of the ranked."""

    newest: int
    """The document that was the latest when the first page was read; the list begins there."""
    top: int
    shown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One document that matches."""

    kind: str
    """`incident` or `session`."""
    id: str
    """The incident's number, or the session's id."""
    title: str
    snippet: tuple[Part, ...]
    """Plain text in parts; `as_html` makes it safe to show."""
    score: float
    """From 0 to 1."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """One page of results."""

    results: tuple[Found, ...]
    total: int
    """How many there are that match, on all pages."""
    exact: bool
    """False where there are more than `total`."""
    next: Position | None
    """Where more follows, None at the end."""


def search(
    connection: Connection,
    text: str,
    *,
    limit: int,
    after: Position | None = None,
    kinds: Sequence[str] | None = None,
) -> SearchPage:
    """Return what matches the text, the best of the latest first.

    The latest 200 matches are ranked, then the 200 before them, and so on, so that a search costs
    the same however much there is to find. Raises CallerError (422) for a query that cannot be
    understood, and says where.
    """
    query = parse(text)
    if kinds is not None:
        query.only(_checked(kinds))
    at = after or _beginning(connection)
    found = find(connection, query, at.top, RANKED + 1)
    ranked = rank(query, found[:RANKED])
    page = ranked[at.shown : at.shown + limit]
    is_all = at.top == at.newest and len(found) <= RANKED
    total = len(found) if is_all else count(connection, query, at.newest)
    return SearchPage(
        results=_shown(connection, query, page),
        total=min(total, COUNTED),
        exact=total <= COUNTED,
        next=_next(at, found, at.shown + limit),
    )


def _beginning(connection: Connection) -> Position:
    latest = newest(connection)
    return Position(latest, latest, 0)


def _checked(kinds: Sequence[str]) -> tuple[str, ...]:
    for kind in kinds:
        if kind not in KINDS:
            raise CallerError(422, f"kind: found {kind!r}; give one of: {', '.join(KINDS)}")
    return tuple(kinds)


def _next(at: Position, found: Sequence[RowMapping], shown: int) -> Position | None:
    if shown < min(len(found), RANKED):
        return Position(at.newest, at.top, shown)
    return Position(at.newest, found[RANKED]["id"], 0) if len(found) > RANKED else None


def _shown(
    connection: Connection, query: Query, page: Sequence[tuple[float, RowMapping]]
) -> tuple[Found, ...]:
    texts = _texts(connection, [row["id"] for _, row in page])
    return tuple(
        Found(
            kind=row["kind"],
            id=row["record"],
            title=row["title"],
            snippet=snippet(query, texts.get(row["id"], "")),
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
