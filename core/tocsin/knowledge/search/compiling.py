"""A query in the languages of the databases. Tokens hold nothing that these languages know."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from tocsin.knowledge.search.composing import pair_token
from tocsin.knowledge.search.query import ParsedQuery, SearchTerm


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
    wanted = [_any((f"({_tsquery_term(it)})" for it in clause), " | ") for clause in query.clauses]
    return " & ".join([*wanted, *(f"!({_tsquery_term(term)})" for term in query.without)])


def _tsquery_term(term: SearchTerm) -> str:
    """Return the term, with the pairs of words in it, by which the index finds it."""
    count = len(term.tokens)
    whole = term.tokens[:-1] if term.prefix else term.tokens
    pairs = [f"'{pair_token(*two)}'" for two in pairwise(whole)]
    if count == 2 and not term.prefix:  # noqa: PLR2004 - the pair is all of it
        return pairs[0]
    phrase = " <-> ".join(f"'{token}'" for token in term.tokens) + (":*" if term.prefix else "")
    return " & ".join([f"({phrase})", *pairs])


def _any(terms: Iterable[str], operator: str) -> str:
    return f"({operator.join(terms)})"
