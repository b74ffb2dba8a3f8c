"""Interpretation of a conversation: each message extends or changes the scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from tocsin import Entity, EntityPattern
from tocsin_plugins.investigator.evidence import entity_sort_key
from tocsin_plugins.investigator.interpretation.message import (
    MessageClause,
    ParsedMessage,
    read_message,
)
from tocsin_plugins.investigator.interpretation.scope import InvestigationScope
from tocsin_plugins.investigator.interpretation.vocabulary import (
    MAX_WORDS,
    FollowUp,
    QueryIntent,
    find_words,
)
from tocsin_plugins.investigator.phrases import (
    format_time,
    join_names,
    name_entity,
    name_pattern,
    shorten,
)


def interpret_messages(
    messages: Sequence[str], now: datetime, providers: Sequence[str] = ()
) -> InvestigationScope:
    """Return the scope of all messages; each extends or changes the previous scope.

    Only names of existing providers are recognized.
    """
    scope = first = InvestigationScope()
    for position, text in enumerate(messages):
        message = read_message(text, now, providers)
        if FollowUp.START_OVER in message.wishes and position:
            names_more = message.names_something and FollowUp.IGNORE not in message.wishes
            scope = _add_note(
                InvestigationScope() if names_more else first, "the session starts over"
            )
        scope = _apply_message(scope, message, is_first=position == 0)
        first = first if position else scope
    last = (scope.misunderstood, _NOTHING_LEFT if scope.nothing_left else None)
    return replace(scope, doubts=(*scope.doubts, *filter(None, last)))


def _apply_message(
    scope: InvestigationScope, message: ParsedMessage, *, is_first: bool
) -> InvestigationScope:
    scope = replace(
        scope,
        intents=message.intents,
        wishes=message.wishes,
        score=message.score,
        taken=tuple(wish.value for wish in FollowUp if wish in message.wishes & _TAKEN),
        latest=message.names,
        misunderstood=None,
    )
    for clause in message.clauses:
        scope = _apply_clause(scope, clause, is_first=is_first)
    scope = _apply_range(scope, message)
    scope = _apply_filters(scope, message)
    scope, unread = _apply_words(scope, message)
    if not is_first and not _was_understood(scope, message):
        return _note_not_understood(scope, message)
    words = join_names([f"“{shorten(word, 80)}”" for word in unread], 10)
    left = (f"these words of the question were not understood: {words}",) if unread else ()
    return replace(scope, doubts=tuple(dict.fromkeys((*scope.doubts, *message.doubts, *left))))


def _was_understood(scope: InvestigationScope, message: ParsedMessage) -> bool:
    """Return whether a message was understood."""
    asks = set(message.intents) - {QueryIntent.WHO_IS} or FollowUp.LOOK_AGAIN in message.wishes
    return bool(scope.taken or asks or message.browses or message.range)


_TAKEN = {FollowUp.EXPLAIN_SCORE, FollowUp.SHOW_TIMELINE, FollowUp.START_OVER}


def _note_not_understood(scope: InvestigationScope, message: ParsedMessage) -> InvestigationScope:
    reason = f"the message was not understood: “{shorten(message.text, 80)}”"
    return replace(scope, misunderstood=f"{reason}. Try {_TRY}")


_TRY = (
    "“also incident 3”, “only 203.0.113.5”, “last 30 days”, “go deeper”, “why is the score 60?” "
    "or “what should I do?”"
)


def _apply_filters(scope: InvestigationScope, message: ParsedMessage) -> InvestigationScope:
    """Return the scope with depth, severity and provider."""
    if QueryIntent.HUNT in message.intents:
        text = "the question is a hunt, so the investigation goes one step deeper"
        scope = replace(_add_note(scope, text), deeper=scope.deeper + 1)
    if message.severity:
        scope = _add_note(scope, f"the minimum severity is {message.severity.value}")
        scope = _add_interpretation(
            scope, f"only incidents with a severity of {message.severity.value} or higher"
        )
        scope = replace(scope, severity=message.severity)
    if message.provider:
        scope = _add_note(scope, f"only provider {shorten(message.provider)} is searched")
        scope = _add_interpretation(scope, f"search only provider {shorten(message.provider)}")
        scope = replace(scope, provider=message.provider)
    return replace(scope, browses=scope.browses or message.browses)


def _apply_clause(
    scope: InvestigationScope, clause: MessageClause, *, is_first: bool
) -> InvestigationScope:
    if FollowUp.IGNORE in clause.wishes:
        return _exclude(scope, clause)
    if FollowUp.DEEPER in clause.wishes and not is_first:
        scope = _add_interpretation(scope, "go one step deeper")
        scope = _add_note(scope, "the investigation goes one step deeper")
        scope = replace(scope, deeper=scope.deeper + 1, narrowed=False)
    if FollowUp.ONLY in clause.wishes and (clause.incidents or clause.entities or clause.patterns):
        return _narrow_to(scope, clause)
    return _add_named(_note_named(scope, clause), clause)


def _narrow_to(scope: InvestigationScope, clause: MessageClause) -> InvestigationScope:
    """Return the scope with only what a clause names."""
    names = join_names(_list_names(clause))
    scope = _add_note(
        _add_interpretation(scope, f"only {names}"), f"the investigation covers only {names}"
    )
    scope = replace(scope, incidents=(), entities=(), techniques=(), patterns=(), words=())
    scope = replace(scope, browses=False, deeper=0, narrowed=True, doubts=())
    return _add_named(scope, clause)


def _note_named(scope: InvestigationScope, clause: MessageClause) -> InvestigationScope:
    names = _list_names(clause)
    return _add_interpretation(scope, f"also investigate {join_names(names)}") if names else scope


def _add_named(scope: InvestigationScope, clause: MessageClause) -> InvestigationScope:
    """Return the scope with what a clause names, including what was excluded before."""
    for text in _list_names(clause):
        scope = _add_note(scope, f"the messages name {text}")
    return replace(
        scope,
        incidents=tuple(sorted({*scope.incidents, *clause.incidents})),
        entities=tuple(sorted({*scope.entities, *clause.entities}, key=entity_sort_key)),
        techniques=tuple(sorted({*scope.techniques, *clause.techniques})),
        patterns=tuple(dict.fromkeys((*scope.patterns, *clause.patterns))),
        ignored_patterns=_omit(scope.ignored_patterns, clause.patterns),
        ignored_incidents=scope.ignored_incidents - set(clause.incidents),
        ignored_entities=scope.ignored_entities - set(clause.entities),
        within=(scope.within | clause.within) - (set(clause.incidents) - clause.within),
        nothing_left=scope.nothing_left and not _list_names(clause),
    )


def _exclude(scope: InvestigationScope, clause: MessageClause) -> InvestigationScope:
    for text in _list_names(clause):
        scope = _add_note(scope, f"{text} is excluded")
        scope = _add_interpretation(scope, f"exclude {text}")
    left = replace(
        scope,
        incidents=tuple(
            incident for incident in scope.incidents if incident not in clause.incidents
        ),
        entities=tuple(entity for entity in scope.entities if entity not in clause.entities),
        patterns=_omit(scope.patterns, clause.patterns),
        ignored_incidents=scope.ignored_incidents | set(clause.incidents),
        ignored_entities=scope.ignored_entities | set(clause.entities),
        ignored_patterns=tuple(dict.fromkeys((*scope.ignored_patterns, *clause.patterns))),
    )
    kept = (entity for entity in left.entities if not _matches(clause.patterns, entity))
    left = replace(left, entities=tuple(kept))
    if scope.is_specific and not left.is_specific:
        return replace(left, nothing_left=True, words=(), browses=False)
    return left


_NOTHING_LEFT = "nothing is left to investigate, because everything in the messages is excluded"


def _apply_range(scope: InvestigationScope, message: ParsedMessage) -> InvestigationScope:
    if message.range is None:
        return scope
    text, window = shorten(message.range.text), message.range.window
    if window is None:
        return replace(scope, doubts=(*scope.doubts, f"“{text}” is not a time in the past"))
    span = f"the time from {format_time(window.start)} to {format_time(window.end)}"
    scope = _add_interpretation(_add_note(scope, f"“{text}” means {span}"), f"search {span}")
    return replace(scope, window=window)


def _apply_words(
    scope: InvestigationScope, message: ParsedMessage
) -> tuple[InvestigationScope, list[str]]:
    """Return the scope with search words, and the words that were not understood.

    Words are searched for if nothing is named. Without a letter they are no search words.
    """
    acts = message.wishes - {FollowUp.ONLY, FollowUp.IGNORE, FollowUp.LOOK_AGAIN}
    is_bound = message.names_something or scope.is_specific or scope.nothing_left
    if is_bound or acts or not message.words:
        return scope, list(message.leftovers)
    kept = tuple(dict.fromkeys((*scope.words, *message.words)))[:MAX_WORDS]
    names = join_names(list(kept), 10)
    scope = _add_interpretation(scope, f"search for the words {names}")
    scope = replace(_add_note(scope, f"the search words are {names}"), words=kept)
    return scope, [word for word in message.leftovers if not set(find_words(word)) & set(kept)]


def _matches(patterns: tuple[EntityPattern, ...], entity: Entity) -> bool:
    return any(pattern.matches(entity) for pattern in patterns)


def _omit(
    patterns: tuple[EntityPattern, ...], others: tuple[EntityPattern, ...]
) -> tuple[EntityPattern, ...]:
    return tuple(pattern for pattern in patterns if pattern not in others)


def _add_interpretation(scope: InvestigationScope, text: str) -> InvestigationScope:
    return replace(scope, taken=(*scope.taken, text))


def _add_note(scope: InvestigationScope, note: str) -> InvestigationScope:
    return scope if note in scope.notes else replace(scope, notes=(*scope.notes, note))


def _list_ranges(clause: MessageClause) -> list[str]:
    """Return the ranges of numbers that a clause names."""
    numbers = sorted(clause.within)
    starts = [number for number in numbers if number - 1 not in clause.within]
    ends = [number for number in numbers if number + 1 not in clause.within]
    pairs = zip(starts, ends, strict=True)
    return [f"incidents {start} to {end}" for start, end in pairs]


def _list_names(clause: MessageClause) -> list[str]:
    incidents = [f"incident {number}" for number in clause.incidents if number not in clause.within]
    incidents += _list_ranges(clause)
    techniques = [f"the technique {technique}" for technique in clause.techniques]
    patterns = [name_pattern(pattern) for pattern in clause.patterns]
    return incidents + [name_entity(entity) for entity in clause.entities] + patterns + techniques
