"""What comes of asking one enricher: an answer, that nothing is known, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from tocsin.model import Enrichment, Entity, Outcome


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no answer."""

    outcome: Outcome
    reason: str
    final: bool = False
    """Whether it would be the same for every other entity."""


Reply: TypeAlias = Enrichment | Failure | None
"""What came of one entity; None where the enricher knows nothing."""


@dataclass(slots=True)
class Replies:
    """What came of asking for several."""

    answers: dict[Entity, Enrichment | None] = field(default_factory=dict)
    failures: dict[Entity, Failure] = field(default_factory=dict)

    def note(self, entity: Entity, reply: Reply) -> None:
        """Add what came of one."""
        if isinstance(reply, Failure):
            self.failures[entity] = reply
        else:
            self.answers[entity] = reply

    def __contains__(self, entity: Entity) -> bool:
        return entity in self.answers or entity in self.failures

    def update(self, others: Replies) -> None:
        """Add what came of others."""
        self.answers |= others.answers
        self.failures |= others.failures
