"""Which documents match, the latest first: each database in its own way, both with one answer.

Neither looks at more matches than it returns, however many there are. FTS5 walks its lists backward
from the last document. PostgreSQL's index knows no order, so it is asked for one stretch of
documents after the other, each four times as long as the one before, until there are enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, text

from tocsin.knowledge.search.compiling import to_fts5, to_tsquery
from tocsin.knowledge.search.composing import SPANS, span_token
from tocsin.knowledge.search.documents import DOCUMENT_ID
from tocsin.knowledge.search.query import ParsedQuery
from tocsin.store.sequences import load_last_allotted
from tocsin.store.tables import EPOCH, documents

MAX_COUNT = 1_000
"""Totals are exact up to here. On PostgreSQL every match that is counted is a page to look at."""

_SHOWN = ("id", "kind", "record", "at", "title", "entities")
_TYPES = {name: documents.c[name].type for name in _SHOWN}
_MICROSECOND = timedelta(microseconds=1)


def find_newest_id(connection: Connection) -> int:
    """Return the id of the document that was indexed last."""
    return load_last_allotted(connection, DOCUMENT_ID)


def find_candidates(
    connection: Connection, query: ParsedQuery, top: int, limit: int
) -> Sequence[RowMapping]:
    """Return the latest matches up to the id `top`, at most `limit`, the latest first."""
    columns = ", ".join(f"documents.{name}" for name in _SHOWN)
    statement, values = _search(connection, query, top, columns, ordered=True)
    typed = text(statement).columns(**_TYPES)
    return connection.execute(typed, {**values, "limit": limit}).mappings().all()


def count_candidates(connection: Connection, query: ParsedQuery, top: int) -> int:
    """Return how many documents up to the id `top` match, and COUNTED + 1 where it is more."""
    inner, values = _search(connection, query, top, "1", ordered=False)
    statement = text(f"SELECT count(*) FROM ({inner}) AS found")  # noqa: S608 - of constants
    return int(connection.execute(statement, {**values, "limit": MAX_COUNT + 1}).scalar_one())


def _search(
    connection: Connection, query: ParsedQuery, top: int, columns: str, *, ordered: bool
) -> tuple[str, dict[str, Any]]:
    """Return a statement that takes `limit` beside the values that are returned with it."""
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
    # CROSS JOIN, so that the index is asked first and in its order
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
    for number, (within, lowest) in enumerate(_stretches(top)):
        # `id + 0` keeps the planner from walking the primary key in place of the text index, and a
        # function that no parallel worker may call keeps the branches one after the other.
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


def _stretches(top: int) -> Iterator[tuple[str, int]]:
    """Yield stretches of documents from `top` down, as tokens and the lowest id; the last has none.

    Each is the one of its size that `top` lies in and the one below, so that it is never short.
    """
    for shift in SPANS:
        last = top >> shift
        if last <= 1:
            break
        yield f"'{span_token(shift, last)}' | '{span_token(shift, last - 1)}'", (last - 1) << shift
    yield "", 0
