"""Snippets of a text around its hits."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tocsin.knowledge.search import tokens
from tocsin.knowledge.search.documents import entity_marks
from tocsin.knowledge.search.query import ParsedQuery, SearchTerm, parse_search_query
from tocsin.model import Entity

SNIPPET_LENGTH = 240
"""Approximate number of characters in a snippet."""
_BEFORE = 80
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class SnippetPart:
    """A piece of a snippet: plain text, and whether it is a hit."""

    text: str
    hit: bool


def build_snippet(query: ParsedQuery, text: str) -> tuple[SnippetPart, ...]:
    """Return the text around the first hit, or else its beginning, in parts."""
    sought = _find_phrases(query)
    start = _first(sought, text)
    excerpt = " ".join(text[start : start + SNIPPET_LENGTH + _BEFORE].split())[
        : SNIPPET_LENGTH + _BEFORE
    ]
    before = "…" if start else ""
    after = "…" if start + SNIPPET_LENGTH + _BEFORE < len(text) else ""
    return tuple(_merged(_parts(sought, before + excerpt + after)))


def render_snippet(parts: Sequence[SnippetPart]) -> str:
    """Return a snippet as HTML, with hits in `<mark>` and all text escaped."""
    return "".join(
        f"<mark>{html.escape(part.text)}</mark>" if part.hit else html.escape(part.text)
        for part in parts
    )


def find_sought_entities(text: str, entities: Iterable[Entity]) -> list[Entity]:
    """Return the entities that a term of a query names; raises InvalidInputError."""
    query = parse_search_query(text)
    terms = [term for clause in query.clauses for term in clause if len(term.tokens) == 1]
    return [entity for entity in entities if any(_is_named(term, entity) for term in terms)]


def _is_named(term: SearchTerm, entity: Entity) -> bool:
    [token] = term.tokens
    marks = entity_marks(entity)
    return token in marks or (term.prefix and any(mark.startswith(token) for mark in marks))


def _find_phrases(query: ParsedQuery) -> list[tuple[tuple[str, ...], bool]]:
    """Return the words of each term that is not a filter, and whether the last is a prefix."""
    terms = [term for clause in query.clauses for term in clause if term.whole]
    return [(words, term.prefix) for term in terms if (words := _words(term))]


def _words(term: SearchTerm) -> tuple[str, ...]:
    return tuple(word for token in term.tokens for word in tokens.split_words(token))


def _first(sought: list[tuple[tuple[str, ...], bool]], text: str) -> int:
    """Return the start of the snippet: at a word, a little before the first hit."""
    lowered = text.lower()
    places = [place for words, _ in sought if (place := lowered.find(words[0])) >= 0]
    start = max(min(places, default=0) - _BEFORE, 0)
    return text.find(" ", start) + 1 if start else 0


def _parts(sought: list[tuple[tuple[str, ...], bool]], text: str) -> Iterator[SnippetPart]:
    found = [(tokens.fold_text(word[0]), word.start(), word.end()) for word in _WORD.finditer(text)]
    done = 0
    for start, end in _spans(sought, found):
        yield SnippetPart(text[done:start], hit=False)
        yield SnippetPart(text[max(start, done) : end], hit=True)
        done = max(done, end)
    yield SnippetPart(text[done:], hit=False)


def _spans(
    sought: list[tuple[tuple[str, ...], bool]], found: list[tuple[str, int, int]]
) -> Iterator[tuple[int, int]]:
    for place, (_, start, _) in enumerate(found):
        lengths = [len(words) for words, prefix in sought if _fits(words, prefix, found, place)]
        if lengths:
            yield start, found[place + max(lengths) - 1][2]


def _fits(
    words: tuple[str, ...], prefix: bool, found: list[tuple[str, int, int]], place: int
) -> bool:
    here = [word for word, _, _ in found[place : place + len(words)]]
    if prefix and len(here) == len(words):
        return here[:-1] == list(words[:-1]) and here[-1].startswith(words[-1])
    return here == list(words)


def _merged(parts: Iterator[SnippetPart]) -> Iterator[SnippetPart]:
    """Drop empty parts, and join adjacent parts of the same kind."""
    last: SnippetPart | None = None
    for part in parts:
        if not part.text:
            continue
        if last is not None and last.hit == part.hit:
            last = SnippetPart(last.text + part.text, last.hit)
            continue
        if last is not None:
            yield last
        last = part
    if last is not None:
        yield last
