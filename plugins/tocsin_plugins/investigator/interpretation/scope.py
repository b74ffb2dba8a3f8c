"""Scope of an investigation."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from tocsin import Entity, EntityPattern, Severity, Window
from tocsin_plugins.investigator.interpretation.vocabulary import FollowUp, QueryIntent


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigationScope:
    """The scope of an investigation."""

    incidents: tuple[int, ...] = ()
    entities: tuple[Entity, ...] = ()
    techniques: tuple[str, ...] = ()
    patterns: tuple[EntityPattern, ...] = ()
    """Networks, ranges and names with wildcards."""
    ignored_incidents: frozenset[int] = frozenset()
    ignored_entities: frozenset[Entity] = frozenset()
    ignored_patterns: tuple[EntityPattern, ...] = ()
    window: Window | None = None
    """None if the messages give none."""
    severity: Severity | None = None
    words: tuple[str, ...] = ()
    browses: bool = False
    """Whether the query asks for incidents in general."""
    deeper: int = 0
    intents: tuple[QueryIntent, ...] = ()
    wishes: frozenset[FollowUp] = frozenset()
    """The follow-up actions of the last message."""
    nothing_left: bool = False
    """Whether everything that was named is excluded."""
    notes: tuple[str, ...] = ()
    """Sentences about how the messages were understood."""
    doubts: tuple[str, ...] = ()
    """Sentences about what was not understood."""

    provider: str | None = None
    """The provider that the messages name."""
    narrowed: bool = False
    """Whether to investigate only what is named."""
    latest: frozenset[int | Entity] = frozenset()
    """The names in the last message, which must exist."""
    within: frozenset[int] = frozenset()
    """The incidents that only a range names."""
    score: float | None = None
    """The score that the last message mentions."""
    taken: tuple[str, ...] = ()
    """The interpretation of the last message."""
    misunderstood: str | None = None
    """The reply if the last message was not understood."""

    @property
    def is_specific(self) -> bool:
        """Whether incidents, entities or patterns are named."""
        return bool(self.incidents or self.entities or self.patterns)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to investigate."""
        narrows = self.window or self.severity or self.browses or self.provider
        finds = self.is_specific or self.techniques or self.words
        return self.nothing_left or not (finds or narrows)

    def ignores(self, entity: Entity) -> bool:
        """Return whether an entity is excluded."""
        if entity in self.entities:
            return False
        is_matched = any(pattern.matches(entity) for pattern in self.ignored_patterns)
        return is_matched or entity in self.ignored_entities

    def without_incidents(self, numbers: Collection[int]) -> InvestigationScope:
        """Return the scope without some of its incidents."""
        return replace(
            self,
            incidents=tuple(incident for incident in self.incidents if incident not in numbers),
        )
