"""What one message says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from tocsin import Entity, EntityKind, Severity, find_observables
from tocsin_plugins.investigator.understanding.times import Range, find_range
from tocsin_plugins.investigator.understanding.words import (
    MOST_OF_A_RANGE,
    Intent,
    Wish,
    browses,
    intents_in,
    named_in,
    numbers_in,
    score_in,
    severity_in,
    who_in,
    wishes_in,
    words_in,
)

_LONGEST = 20_000
_CLAUSES = re.compile(r";|\bbut\b|\bthen\b|(?<=[\w)])[.!?]\s", re.IGNORECASE)
_MOST = 500


@dataclass(frozen=True, slots=True)
class Clause:
    """What a part of a message names, and what is to be done with that."""

    incidents: tuple[int, ...]
    within: frozenset[int]
    """The incidents that only a range names."""
    entities: tuple[Entity, ...]
    techniques: tuple[str, ...]
    wishes: frozenset[Wish]


@dataclass(frozen=True, slots=True)
class Message:
    """What a message says, as far as it was understood."""

    clauses: tuple[Clause, ...]
    range: Range | None
    severity: Severity | None
    intents: tuple[Intent, ...]
    browses: bool
    words: tuple[str, ...]
    provider: str | None
    score: float | None
    """The score that it speaks of."""
    cut: str | None
    """A range of incidents that is too long to be read to its end."""
    text: str

    @property
    def wishes(self) -> frozenset[Wish]:
        """What is to be done."""
        return frozenset[Wish]().union(*(clause.wishes for clause in self.clauses))

    @property
    def names(self) -> frozenset[int | Entity]:
        """The incidents and entities that are named."""
        named: set[int | Entity] = set()
        for clause in self.clauses:
            named |= {*clause.incidents, *clause.entities}
        return frozenset(named)

    @property
    def names_something(self) -> bool:
        """Whether an incident, an entity or a technique is named."""
        return any(it.incidents or it.entities or it.techniques for it in self.clauses)


def read_message(text: str, now: datetime, providers: Sequence[str] = ()) -> Message:
    """Return what a message says; of a very long one, what its beginning says."""
    text = " ".join(text[:_LONGEST].split())
    span = find_range(text, now)
    rest = text.replace(span.text, " ") if span else text
    provider, rest = provider_in(rest, providers)
    numbers = numbers_in(rest)
    return Message(
        clauses=tuple(_clause(part) for part in _CLAUSES.split(rest) if part.strip()),
        range=span,
        severity=severity_in(rest),
        intents=intents_in(rest),
        browses=browses(rest),
        words=words_in(numbers.rest),
        provider=provider,
        score=score_in(rest),
        cut=numbers.cut,
        text=text,
    )


def provider_in(text: str, providers: Sequence[str]) -> tuple[str | None, str]:
    """Return the provider that a text names, and the text without it."""
    for name in sorted(providers):
        called = re.escape(name)
        before, after = r"\b(?:provider[:=\s]\s*|(?:from|in|on|at)\s)", r"(?![\w.-])"
        pattern = re.compile(rf"{before}{called}{after}|\b{called}\sprovider\b", re.IGNORECASE)
        if pattern.search(text):
            return name, pattern.sub(" ", text)
    return None, text


def _clause(text: str) -> Clause:
    numbers = numbers_in(text)
    found = find_observables(numbers.rest)
    entities = {*found.entities, *_named(numbers.rest)}
    return Clause(
        incidents=numbers.named[:MOST_OF_A_RANGE],
        within=numbers.within,
        entities=tuple(sorted(entities or set(_asked_of(text)), key=_order))[:_MOST],
        techniques=tuple(sorted(set(found.techniques)))[:_MOST],
        wishes=wishes_in(text),
    )


def _asked_of(text: str) -> Iterator[Entity]:
    """Yield who it is asked of who that is."""
    if (value := who_in(text)) and not value.isdecimal():
        yield Entity(EntityKind.USER, value)


def _order(entity: Entity) -> tuple[str, str]:
    return entity.kind.value, entity.value


def _named(text: str) -> Iterator[Entity]:
    for kind, value in named_in(text):
        if "@" not in value and not value.replace(".", "").isdecimal():
            yield Entity(EntityKind(kind), value)
