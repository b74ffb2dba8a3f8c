"""Scope of an investigation."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from tocsin import Entity, Severity, Window
from tocsin_plugins.investigator.interpretation.vocabulary import FollowUp, QueryIntent


@dataclass(frozen=True, slots=True, kw_only=True)
class InvestigationScope:
    """What is to be looked at."""

    incidents: tuple[int, ...] = ()
    entities: tuple[Entity, ...] = ()
    techniques: tuple[str, ...] = ()
    ignored_incidents: frozenset[int] = frozenset()
    ignored_entities: frozenset[Entity] = frozenset()
    window: Window | None = None
    """None where the messages give none."""
    severity: Severity | None = None
    words: tuple[str, ...] = ()
    browses: bool = False
    """Whether incidents in general are asked for."""
    deeper: int = 0
    intents: tuple[QueryIntent, ...] = ()
    wishes: frozenset[FollowUp] = frozenset()
    """What the last message wants done."""
    nothing_left: bool = False
    """Whether all that was named was left out again."""
    notes: tuple[str, ...] = ()
    """How the messages were understood, in sentences."""
    doubts: tuple[str, ...] = ()
    """What of them made no sense."""

    provider: str | None = None
    """The provider that the messages name."""
    narrowed: bool = False
    """Whether nothing is to be looked at beyond what is named."""
    latest: frozenset[int | Entity] = frozenset()
    """What the last message names, which must exist."""
    within: frozenset[int] = frozenset()
    """The incidents that only a range names."""
    score: float | None = None
    """The score that the last message speaks of."""
    taken: tuple[str, ...] = ()
    """What the last message was taken for."""
    misunderstood: str | None = None
    """What is said where the last message was not understood."""

    @property
    def is_specific(self) -> bool:
        """Whether incidents or entities are named."""
        return bool(self.incidents or self.entities)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to hold on to."""
        narrows = self.window or self.severity or self.browses or self.provider
        finds = self.is_specific or self.techniques or self.words
        return self.nothing_left or not (finds or narrows)

    def without_incidents(self, numbers: Collection[int]) -> InvestigationScope:
        """Return the scope without some of its incidents."""
        return replace(
            self,
            incidents=tuple(incident for incident in self.incidents if incident not in numbers),
        )
