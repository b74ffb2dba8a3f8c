"""How well a document fits a query, by one rule for both databases."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import RowMapping

from tocsin.knowledge.search import tokens
from tocsin.knowledge.search.query import ParsedQuery, SearchTerm

IN_TITLE = 3
OWN_ENTITY = 2
IN_TEXT = 1


def rank_documents(
    query: ParsedQuery, found: Sequence[RowMapping]
) -> list[tuple[float, RowMapping]]:
    """Return the documents with their scores, the best first.

    Each term counts 3 where it stands in the title, 2 where it is an entity of the document, and 1
    where it is somewhere in its text; of terms joined by OR the best counts. The score is the part
    that was reached of what could be, from 0 to 1; filters count for nothing, and a query of
    filters alone scores 1. Of equal scores the latest comes first.
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
    reached = sum(max(_score_term(term, title, entities) for term in it) for it in clauses)
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
