"""Query language: words, "phrases", prefix*, field:value, -without, one OR another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NoReturn, TypeVar

from tocsin.errors import InvalidInputError
from tocsin.knowledge.search import tokens
from tocsin.knowledge.search.fields import (
    CLOSED,
    FIELDS,
    KINDS,
    MOMENTS,
    find_field,
    parse_bound,
    parse_closed_value,
)

T = TypeVar("T")

MAX_QUERY = 1_000
"""Maximum number of characters in a query."""
MAX_TERMS = 32
"""Maximum number of terms in a query, and of words in a term."""
MIN_PREFIX = 3
"""Minimum number of characters in a prefix, since shorter ones match too many words."""

_PART = re.compile(
    r"""(?P<without>-)?
        (?:(?P<field>[A-Za-z_]{2,}):(?!//|\\))?
        (?:"(?P<phrase>[^"]*)"(?P<star>\*)?|(?P<word>[^\s"]+))?""",
    re.VERBOSE,
)
_SPACE = re.compile(r"\s*")
_HEXADECIMAL = re.compile(r"[0-9a-fA-F:]*:[0-9a-fA-F:.]*")


@dataclass(frozen=True, slots=True)
class SearchTerm:
    """Consecutive tokens; with `prefix`, the last is the beginning of one."""

    tokens: tuple[str, ...]
    prefix: bool = False
    whole: str = ""
    """The term as an entity; empty for a filter."""


@dataclass(slots=True)
class ParsedQuery:
    """A parsed query: documents match any term of every clause, and no term of `without`."""

    clauses: list[list[SearchTerm]] = field(default_factory=list)
    without: list[SearchTerm] = field(default_factory=list)
    since: datetime | None = None
    until: datetime | None = None

    @property
    def has_prefix(self) -> bool:
        """Whether a term is the beginning of a token."""
        return any(term.prefix for clause in (*self.clauses, self.without) for term in clause)

    def only(self, kinds: tuple[str, ...]) -> None:
        """Restrict the query to documents of these kinds."""
        self.clauses.append([SearchTerm((tokens.field_token("kind", kind),)) for kind in kinds])


@dataclass(frozen=True, slots=True)
class _QueryPart:
    """One term as written, and the position of its first character, from 1."""

    place: int
    without: bool
    field: str | None
    text: str
    quoted: bool
    star: bool


def parse_search_query(text: str) -> ParsedQuery:
    """Return the parsed query. Raises InvalidInputError with the position of the error."""
    if len(text) > MAX_QUERY:
        _refuse(f"a query can have at most {MAX_QUERY} characters; this one has {len(text)}")
    if "\0" in text:
        _refuse("a query must not contain NUL", text.index("\0") + 1)
    parts = list(_parts(text))
    if not parts:
        _refuse("enter a query, such as powershell, ip:192.0.2.1 or severity:high")
    if len(parts) > MAX_TERMS:
        _refuse(f"a query can have at most {MAX_TERMS} terms", parts[MAX_TERMS].place)
    query = ParsedQuery()
    joined = False
    for number, part in enumerate(parts):
        if _is_or(part):
            _check_or(parts, number)
            joined = True
            continue
        _add(query, part, joined=joined)
        joined = False
    if not query.clauses:
        query.only(KINDS)
    return query


def _parts(text: str) -> Iterator[_QueryPart]:
    place = _match_end(_SPACE, text, 0)
    while place < len(text):
        match = _PART.match(text, place)
        assert match is not None  # noqa: S101 - every part of it is optional
        yield _part(match, text)
        place = _match_end(_SPACE, text, match.end())


def _match_end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return start if match is None else match.end()


def _part(match: re.Match[str], text: str) -> _QueryPart:
    place, phrase, word = match.start() + 1, match["phrase"], match["word"]
    if phrase is None and word is None:
        if text[match.end() : match.end() + 1] == '"':
            _refuse("the closing quotation mark is missing", match.end() + 1)
        _refuse(f"a term is missing after {match[0]!r}", place)
    name = match["field"]
    if phrase is not None:
        return _QueryPart(place, bool(match["without"]), name, phrase, True, bool(match["star"]))
    if name and _HEXADECIMAL.fullmatch(f"{name}:{word}") and find_field(name) is None:
        name, word = None, f"{name}:{word}"  # an IPv6 address
    star = word.endswith("*")
    return _QueryPart(place, bool(match["without"]), name, word.rstrip("*"), False, star)


def _is_or(part: _QueryPart) -> bool:
    return part.text == "OR" and not (part.quoted or part.field or part.without or part.star)


def _check_or(parts: list[_QueryPart], number: int) -> None:
    beside = parts[max(number - 1, 0) : number + 2]
    if len(beside) < 3 or any(_is_or(neighbor) for neighbor in (beside[0], beside[2])):  # noqa: PLR2004
        _refuse("OR needs a term on both sides", parts[number].place)
    for part in (beside[0], beside[2]):
        if part.without or (part.field and part.field.lower() in MOMENTS):
            _refuse("terms next to OR must not use -, before: or after:", part.place)


def _add(query: ParsedQuery, part: _QueryPart, *, joined: bool) -> None:
    name = None if part.field is None else find_field(part.field)
    if part.field is not None and name is None:
        _refuse(
            f"unknown field {part.field!r}; valid fields: {', '.join(FIELDS)}; "
            "use quotation marks to search for it as text",
            part.place,
        )
    if name in MOMENTS:
        _bound(query, part, name == "after")
        return
    term = _free_term(part) if name is None else _field_term(part, name)
    if part.without:
        query.without.append(term)
    elif joined:
        query.clauses[-1].append(term)
    else:
        query.clauses.append([term])


def _bound(query: ParsedQuery, part: _QueryPart, is_after: bool) -> None:
    if part.without:
        _refuse("use before: instead of -after:, and after: instead of -before:", part.place)
    at = _parse_value(part, lambda: parse_bound(part.text))
    if is_after:
        query.since = at if query.since is None else max(query.since, at)
    else:
        query.until = at if query.until is None else min(query.until, at)


def _field_term(part: _QueryPart, name: str) -> SearchTerm:
    value = tokens.fold_text(part.text).strip()
    if not value:
        _refuse(f"a value is missing after {name}:", part.place)
    if part.star and name not in CLOSED:
        _check_prefix(value, part.place)
        return SearchTerm((tokens.field_token(name, value),), prefix=True)
    known = _parse_value(part, lambda: parse_closed_value(name, value))
    return SearchTerm((tokens.field_token(name, known),))


def _free_term(part: _QueryPart) -> SearchTerm:
    folded = tokens.fold_text(part.text)
    spoken = tokens.split_words(folded)
    entity = None if part.quoted or part.star else tokens.single_entity_token(folded)
    if entity is not None:
        return SearchTerm((entity,), whole=entity)
    if not spoken:
        _refuse(f"{part.text!r} does not contain a word", part.place)
    if len(spoken) > MAX_TERMS:
        _refuse(f"a phrase can have at most {MAX_TERMS} words", part.place)
    prefix = part.star and folded[-1:].isalnum()
    if prefix:
        _check_prefix(spoken[-1], part.place)
    return SearchTerm(tuple(spoken), prefix, tokens.whole_token(folded))


def _check_prefix(beginning: str, place: int) -> None:
    if len(beginning) < MIN_PREFIX:
        _refuse(f"a prefix needs at least {MIN_PREFIX} characters before *", place)


def _parse_value(part: _QueryPart, make: Callable[[], T]) -> T:
    try:
        return make()
    except (ValueError, OverflowError) as error:
        _refuse(f"found {part.text!r}; {error}", part.place)


def _refuse(reason: str, place: int | None = None) -> NoReturn:
    where = "" if place is None else f" at character {place}"
    raise InvalidInputError(f"q{where}: {reason}.")
