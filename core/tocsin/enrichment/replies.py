"""What comes of asking one enricher: an answer, that nothing is known, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from tocsin.model import Enrichment, Entity, QueryOutcome


@dataclass(frozen=True, slots=True)
class EnrichmentFailure:
    """Why there is no answer."""

    outcome: QueryOutcome
    reason: str
    final: bool = False
    """Whether it would be the same for every other entity."""


EnricherReply: TypeAlias = Enrichment | EnrichmentFailure | None
"""What came of one entity; None where the enricher knows nothing."""


@dataclass(slots=True)
class EnricherReplies:
    """What came of asking for several."""

    answers: dict[Entity, Enrichment | None] = field(default_factory=dict)
    failures: dict[Entity, EnrichmentFailure] = field(default_factory=dict)

    def note(self, entity: Entity, reply: EnricherReply) -> None:
        """Add what came of one."""
        if isinstance(reply, EnrichmentFailure):
            self.failures[entity] = reply
        else:
            self.answers[entity] = reply

    def __contains__(self, entity: Entity) -> bool:
        return entity in self.answers or entity in self.failures

    def update(self, others: EnricherReplies) -> None:
        """Add what came of others."""
        self.answers |= others.answers
        self.failures |= others.failures
