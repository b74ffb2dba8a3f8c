"""Latest documents that match a query, in the query language of each database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, RowMapping, text

from tocsin.knowledge.search.documents import (
    DOCUMENT_ID,
    PREFIX_SPAN,
    SPANS,
    WITHOUT_PREFIXES,
    block_token,
    pair_token,
    span_token,
)
from tocsin.knowledge.search.query import ParsedQuery, SearchTerm
from tocsin.store import load_last_allotted
from tocsin.store.tables import EPOCH, documents

MAX_COUNT = 1_000
"""Totals are exact up to this number. On PostgreSQL, each counted match reads a page."""
_SHOWN = ("id", "kind", "record", "at", "title", "entities")
_TYPES = {name: documents.c[name].type for name in _SHOWN}
_MICROSECOND = timedelta(microseconds=1)
_MAX_BLOCKS = 32
"""The most blocks that a prefix is searched in before all matches in the index are read."""
_BLOCKS_AT_ONCE = 8
"""With more in one condition, PostgreSQL expects that reading a small table costs less."""


def find_newest_id(connection: Connection) -> int:
    """Return the ID of the last indexed document."""
    return load_last_allotted(connection, DOCUMENT_ID)


class CandidateSearch:
    """Finds and counts the documents that match one query."""

    def __init__(self, connection: Connection, query: ParsedQuery) -> None:
        self._connection = connection
        self._query = query
        self._is_on_sqlite = connection.dialect.name == "sqlite"
        self._without_prefixes = 0
        if query.has_prefix and not self._is_on_sqlite:
            self._without_prefixes = load_last_allotted(connection, WITHOUT_PREFIXES)

    def find(self, top: int, limit: int) -> Sequence[RowMapping]:
        """Return the latest matches up to the ID `top`, at most `limit`, the latest first."""
        columns = ", ".join(f"documents.{name}" for name in _SHOWN)
        statement, values = self._build(top, columns, ordered=True)
        typed = text(statement).columns(**_TYPES)
        return self._connection.execute(typed, {**values, "limit": limit}).mappings().all()

    def count(self, top: int) -> int:
        """Return the number of matches up to the ID `top`, or MAX_COUNT + 1 if there are more."""
        inner, values = self._build(top, "1", ordered=False)
        statement = text(f"SELECT count(*) FROM ({inner}) AS found")  # noqa: S608 - of constants
        counted = self._connection.execute(statement, {**values, "limit": MAX_COUNT + 1})
        return int(counted.scalar_one())

    def _build(self, top: int, columns: str, *, ordered: bool) -> tuple[str, dict[str, Any]]:
        """Return a statement with its parameters, except `limit`."""
        query = self._query
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
        build = self._build_for_sqlite if self._is_on_sqlite else self._build_for_postgres
        statement, more = build(top, columns, when, ordered=ordered)
        return f"{statement} LIMIT :limit", {**values, **more}

    def _build_for_sqlite(
        self, top: int, columns: str, when: str, *, ordered: bool
    ) -> tuple[str, dict[str, Any]]:
        order = " ORDER BY documents_index.rowid DESC" if ordered else ""
        # CROSS JOIN, so that the index is read first and in order
        joined = " CROSS JOIN documents ON documents.id = documents_index.rowid"
        statement = (
            f"SELECT {columns} FROM documents_index{joined if ordered or when else ''} "  # noqa: S608
            f"WHERE documents_index MATCH :query AND documents_index.rowid <= :top{when}{order}"
        )
        return statement, {"query": to_fts5(self._query), "top": top}

    def _build_for_postgres(
        self, top: int, columns: str, when: str, *, ordered: bool
    ) -> tuple[str, dict[str, Any]]:
        values: dict[str, Any] = {}
        branches = []
        for number, (within, lowest, highest, blocks) in enumerate(self._list_ranges(top)):
            # `id + 0` keeps the planner from using the primary key instead of the text index, and a
            # function that is not parallel-safe keeps the branches sequential.
            branches.append(
                f"(SELECT {columns} FROM documents "  # noqa: S608
                f"WHERE tokens @@ CAST(:query{number} AS tsquery) AND pg_backend_pid() > 0 "
                f"AND documents.id + 0 BETWEEN :low{number} AND :high{number}{when}"
                + (" ORDER BY documents.id + 0 DESC)" if ordered else ")")
            )
            plain = to_tsquery(self._query, blocks)
            values |= {
                f"query{number}": f"{plain} & ({within})" if within else plain,
                f"low{number}": lowest,
                f"high{number}": highest,
            }
        return " UNION ALL ".join(branches), values

    def _list_ranges(self, top: int) -> Iterator[tuple[str, int, int, Sequence[int]]]:
        """Yield ranges of documents as `_list_spans` does, with their highest IDs and blocks.

        Prefixes are searched in these blocks; without any, in the whole index. After an upgrade,
        older documents lack the tokens for this.
        """
        highest = top
        for within, lowest in _list_spans(top):
            blocks = range(lowest >> PREFIX_SPAN, (highest >> PREFIX_SPAN) + 1)
            is_complete = max(lowest, 1) > self._without_prefixes
            if not self._query.has_prefix or not is_complete or len(blocks) > _MAX_BLOCKS:
                yield within, lowest, highest, ()
            else:
                for end in range(blocks.stop, blocks.start, -_BLOCKS_AT_ONCE):
                    some = range(max(end - _BLOCKS_AT_ONCE, blocks.start), end)
                    first, last = some.start << PREFIX_SPAN, (end << PREFIX_SPAN) - 1
                    yield within, max(lowest, first), min(highest, last), some
            highest = lowest - 1


def _list_spans(top: int) -> Iterator[tuple[str, int]]:
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


def to_tsquery(query: ParsedQuery, blocks: Sequence[int] = ()) -> str:
    """Return the query as PostgreSQL reads a tsquery (its documentation, section 8.11.2).

    With `blocks`, prefixes are found in these blocks of documents only.
    """
    wanted = [
        _any((f"({_tsquery_term(term, blocks)})" for term in clause), " | ")
        for clause in query.clauses
    ]
    return " & ".join([*wanted, *(f"!({_tsquery_term(term, blocks)})" for term in query.without)])


def _tsquery_term(term: SearchTerm, blocks: Sequence[int]) -> str:
    """Return the term with its pairs of words, by which the index finds it."""
    count = len(term.tokens)
    whole = term.tokens[:-1] if term.prefix else term.tokens
    pairs = [f"'{pair_token(*two)}'" for two in pairwise(whole)]
    if count == 2 and not term.prefix:  # noqa: PLR2004 - the pair is the whole term
        return pairs[0]
    words = [f"'{token}'" for token in whole]
    if term.prefix:
        beginnings = [block_token(block, term.tokens[-1]) for block in blocks] or term.tokens[-1:]
        words.append(_any((f"'{beginning}':*" for beginning in beginnings), " | "))
    phrase = " <-> ".join(words)
    return " & ".join([f"({phrase})", *pairs])


def _any(terms: Iterable[str], operator: str) -> str:
    return f"({operator.join(terms)})"
