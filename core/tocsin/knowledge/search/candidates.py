"""Latest documents that match a query, in the query language of each database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, RowMapping, text

from tocsin.knowledge.search.documents import DOCUMENT_ID, SPANS, pair_token, span_token
from tocsin.knowledge.search.query import ParsedQuery, SearchTerm
from tocsin.store import load_last_allotted
from tocsin.store.tables import EPOCH, documents

MAX_COUNT = 1_000
"""Totals are exact up to this number. On PostgreSQL, each counted match reads a page."""
_SHOWN = ("id", "kind", "record", "at", "title", "entities")
_TYPES = {name: documents.c[name].type for name in _SHOWN}
_MICROSECOND = timedelta(microseconds=1)


def find_newest_id(connection: Connection) -> int:
    """Return the ID of the last indexed document."""
    return load_last_allotted(connection, DOCUMENT_ID)


def find_candidates(
    connection: Connection, query: ParsedQuery, top: int, limit: int
) -> Sequence[RowMapping]:
    """Return the latest matches up to the ID `top`, at most `limit`, the latest first."""
    columns = ", ".join(f"documents.{name}" for name in _SHOWN)
    statement, values = _search(connection, query, top, columns, ordered=True)
    typed = text(statement).columns(**_TYPES)
    return connection.execute(typed, {**values, "limit": limit}).mappings().all()


def count_candidates(connection: Connection, query: ParsedQuery, top: int) -> int:
    """Return the number of matches up to the ID `top`, or MAX_COUNT + 1 if there are more."""
    inner, values = _search(connection, query, top, "1", ordered=False)
    statement = text(f"SELECT count(*) FROM ({inner}) AS found")  # noqa: S608 - of constants
    return int(connection.execute(statement, {**values, "limit": MAX_COUNT + 1}).scalar_one())


def _search(
    connection: Connection, query: ParsedQuery, top: int, columns: str, *, ordered: bool
) -> tuple[str, dict[str, Any]]:
    """Return a statement with its parameters, except `limit`."""
    bounds = {
        condition: value
        for condition, value in (("at >= :since", query.since), ("at < :until", query.until))
        if value is not None
    }
    when = "".join(f" AND documents.{condition}" for condition in bounds)
    values = {
        condition.partition(":")[2]: (value - EPOCH) // _MICROSECOND
        for condition, value in bounds.items()
    }
    make = _on_sqlite if connection.dialect.name == "sqlite" else _on_postgres
    statement, more = make(query, top, columns, when, ordered=ordered)
    return f"{statement} LIMIT :limit", {**values, **more}


def _on_sqlite(
    query: ParsedQuery, top: int, columns: str, when: str, *, ordered: bool
) -> tuple[str, dict[str, Any]]:
    order = " ORDER BY documents_index.rowid DESC" if ordered else ""
    # CROSS JOIN, so that the index is read first and in order
    joined = " CROSS JOIN documents ON documents.id = documents_index.rowid"
    statement = (
        f"SELECT {columns} FROM documents_index{joined if ordered or when else ''} "  # noqa: S608
        f"WHERE documents_index MATCH :query AND documents_index.rowid <= :top{when}{order}"
    )
    return statement, {"query": to_fts5(query), "top": top}


def _on_postgres(
    query: ParsedQuery, top: int, columns: str, when: str, *, ordered: bool
) -> tuple[str, dict[str, Any]]:
    values: dict[str, Any] = {}
    plain, branches, above = to_tsquery(query), [], top
    for number, (within, lowest) in enumerate(_blocks(top)):
        # `id + 0` keeps the planner from using the primary key instead of the text index, and a
        # function that is not parallel-safe keeps the branches sequential.
        branches.append(
            f"(SELECT {columns} FROM documents "  # noqa: S608
            f"WHERE tokens @@ CAST(:query{number} AS tsquery) AND pg_backend_pid() > 0 "
            f"AND documents.id + 0 BETWEEN :low{number} AND :high{number}{when}"
            + (" ORDER BY documents.id + 0 DESC)" if ordered else ")")
        )
        values |= {
            f"query{number}": f"{plain} & ({within})" if within else plain,
            f"low{number}": lowest,
            f"high{number}": above,
        }
        above = lowest - 1
    return " UNION ALL ".join(branches), values


def _blocks(top: int) -> Iterator[tuple[str, int]]:
    """Yield ranges of documents from `top` down, as tokens and the lowest ID.

    Each covers the block of its size that contains `top` and the block below, so it is never short.
    The last range has no tokens and covers the rest.
    """
    for shift in SPANS:
        last = top >> shift
        if last <= 1:
            break
        yield f"'{span_token(shift, last)}' | '{span_token(shift, last - 1)}'", (last - 1) << shift
    yield "", 0


def to_fts5(query: ParsedQuery) -> str:
    """Return the query as FTS5 reads it (https://sqlite.org/fts5.html, section 3)."""
    wanted = " AND ".join(_any(map(_fts5_term, clause), " OR ") for clause in query.clauses)
    if not query.without:
        return wanted
    return f"({wanted}) NOT {_any(map(_fts5_term, query.without), ' OR ')}"


def _fts5_term(term: SearchTerm) -> str:
    return f'"{" ".join(term.tokens)}"' + (" *" if term.prefix else "")


def to_tsquery(query: ParsedQuery) -> str:
    """Return the query as PostgreSQL reads a tsquery (its documentation, section 8.11.2)."""
    wanted = [
        _any((f"({_tsquery_term(term)})" for term in clause), " | ") for clause in query.clauses
    ]
    return " & ".join([*wanted, *(f"!({_tsquery_term(term)})" for term in query.without)])


def _tsquery_term(term: SearchTerm) -> str:
    """Return the term with its pairs of words, by which the index finds it."""
    count = len(term.tokens)
    whole = term.tokens[:-1] if term.prefix else term.tokens
    pairs = [f"'{pair_token(*two)}'" for two in pairwise(whole)]
    if count == 2 and not term.prefix:  # noqa: PLR2004 - the pair is the whole term
        return pairs[0]
    phrase = " <-> ".join(f"'{token}'" for token in term.tokens) + (":*" if term.prefix else "")
    return " & ".join([f"({phrase})", *pairs])


def _any(terms: Iterable[str], operator: str) -> str:
    return f"({operator.join(terms)})"
