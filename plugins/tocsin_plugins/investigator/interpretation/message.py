"""Interpretation of one message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from tocsin import Entity, EntityKind, EntityPattern, Severity, find_observables
from tocsin_plugins.investigator.evidence import entity_sort_key
from tocsin_plugins.investigator.interpretation.leftovers import find_leftovers
from tocsin_plugins.investigator.interpretation.patterns import find_patterns
from tocsin_plugins.investigator.interpretation.time_ranges import TimeRange, find_range
from tocsin_plugins.investigator.interpretation.vocabulary import (
    MAX_RANGE,
    FollowUp,
    QueryIntent,
    browses,
    find_asked_name,
    find_intents,
    find_named_values,
    find_numbers,
    find_score,
    find_severity,
    find_wishes,
    find_words,
)
from tocsin_plugins.investigator.phrases import shorten

_LONGEST = 20_000
_CLAUSES = re.compile(r";|\bbut\b|\bthen\b|(?<=[\w)])[.!?]\s", re.IGNORECASE)
_MOST = 500


@dataclass(frozen=True, slots=True)
class MessageClause:
    """The names in a part of a message, and the follow-up actions on them."""

    incidents: tuple[int, ...]
    within: frozenset[int]
    """The incidents that only a range names."""
    entities: tuple[Entity, ...]
    techniques: tuple[str, ...]
    patterns: tuple[EntityPattern, ...]
    wishes: frozenset[FollowUp]
    leftovers: tuple[str, ...]
    """The words that were not understood, unless they are searched for."""
    doubts: tuple[str, ...]
    """What cannot be investigated as it is written."""

    @property
    def names_something(self) -> bool:
        """Whether an incident, an entity, a technique or a pattern is named."""
        return bool(self.incidents or self.entities or self.techniques or self.patterns)


@dataclass(frozen=True, slots=True)
class ParsedMessage:
    """A message, as far as it was understood."""

    clauses: tuple[MessageClause, ...]
    range: TimeRange | None
    severity: Severity | None
    intents: tuple[QueryIntent, ...]
    browses: bool
    words: tuple[str, ...]
    provider: str | None
    score: float | None
    """The score that it mentions."""
    doubts: tuple[str, ...]
    """What was not understood, other than words."""
    text: str

    @property
    def wishes(self) -> frozenset[FollowUp]:
        """The follow-up actions of the message."""
        return frozenset[FollowUp]().union(*(clause.wishes for clause in self.clauses))

    @property
    def names(self) -> frozenset[int | Entity]:
        """The incidents and entities that are named."""
        named: set[int | Entity] = set()
        for clause in self.clauses:
            named |= {*clause.incidents, *clause.entities}
        return frozenset(named)

    @property
    def names_something(self) -> bool:
        """Whether an incident, an entity, a technique or a pattern is named."""
        return any(clause.names_something for clause in self.clauses)

    @property
    def leftovers(self) -> tuple[str, ...]:
        """The words that were not understood, unless they are searched for."""
        every = (word for clause in self.clauses for word in clause.leftovers)
        return tuple(dict.fromkeys(every))


def read_message(text: str, now: datetime, providers: Sequence[str] = ()) -> ParsedMessage:
    """Return a parsed message; only the beginning of a very long one."""
    doubts = (
        [f"only the first {_LONGEST:,} characters of the message were read"]
        if text[_LONGEST:]
        else []
    )
    text = " ".join(text[:_LONGEST].split())
    span = find_range(text, now)
    rest = text.replace(span.text, " ") if span else text
    provider, rest = find_provider(rest, providers)
    if span and (other := find_range(rest, now)):
        doubts.append(f"“{other.text}” was ignored, because “{span.text}” sets the time range")
        rest = rest.replace(other.text, " ")
    patterns = find_patterns(rest)
    numbers = find_numbers(patterns.rest)
    if numbers.cut:
        doubts.append(f"only the first {MAX_RANGE:,} numbers of {numbers.cut} were read")
    clauses = tuple(_read_clause(part) for part in _CLAUSES.split(rest) if part.strip())
    return ParsedMessage(
        clauses=clauses,
        range=span,
        severity=find_severity(rest),
        intents=find_intents(rest),
        browses=browses(rest),
        words=find_words(numbers.rest),
        provider=provider,
        score=find_score(rest),
        doubts=(*doubts, *(doubt for clause in clauses for doubt in clause.doubts)),
        text=text,
    )


def find_provider(text: str, providers: Sequence[str]) -> tuple[str | None, str]:
    """Return the provider that a text names, and the text without it."""
    for name in sorted(providers):
        called = re.escape(name)
        before, after = r"\b(?:provider[:=\s]\s*|(?:from|in|on|at)\s)", r"(?![\w.-])"
        pattern = re.compile(rf"{before}{called}{after}|\b{called}\sprovider\b", re.IGNORECASE)
        if pattern.search(text):
            return name, pattern.sub(" ", text)
    return None, text


def _read_clause(text: str) -> MessageClause:
    patterns = find_patterns(text)
    numbers = find_numbers(patterns.rest)
    found = find_observables(numbers.rest)
    entities = {*found.entities, *patterns.entities, *_find_named(numbers.rest)}
    entities = entities or set(_find_asked_user(text))
    doubts = [
        f"“{shorten(invalid, 80)}” is not a network, range or name" for invalid in patterns.invalid
    ]
    if (left := len(entities) - _MOST) > 0:
        doubts.append(f"{left:,} of the {len(entities):,} entities in the message were ignored")
    techniques = tuple(sorted(set(found.techniques)))[:_MOST]
    return MessageClause(
        incidents=numbers.named[:MAX_RANGE],
        within=numbers.within,
        entities=tuple(sorted(entities, key=entity_sort_key))[:_MOST],
        techniques=techniques,
        patterns=patterns.patterns,
        wishes=find_wishes(text),
        leftovers=tuple(find_leftovers(numbers.rest, entities, techniques)),
        doubts=tuple(doubts),
    )


def _find_asked_user(text: str) -> Iterator[Entity]:
    """Yield the user of a "who is" question."""
    if (value := find_asked_name(text)) and not value.isdecimal():
        yield Entity(EntityKind.USER, value)


def _find_named(text: str) -> Iterator[Entity]:
    for kind, value in find_named_values(text):
        if "@" not in value and not value.replace(".", "").isdecimal():
            yield Entity(EntityKind(kind), value)
