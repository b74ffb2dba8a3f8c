"""Enrichment results of one enricher for several entities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from tocsin.clock import isoformat
from tocsin.enrichment.cache import CachedEnrichment
from tocsin.enrichment.in_flight import EnrichmentFailure
from tocsin.model import Enrichment, Entity, Marking, QueryOutcome

_SHOWN = 3  # different reasons


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrichmentResult:
    """What an enricher is asked for, and what it says."""

    enrichments: tuple[Enrichment, ...]
    """In the order of the entities; of those that it knows nothing of, nothing."""
    outcome: QueryOutcome
    reason: str | None = None
    """Why it was not answered, or not in full; None where it was."""


@dataclass(slots=True, kw_only=True)
class GatheredEnrichments:
    """What came of asking one enricher; each entity is in one of these."""

    refused: Mapping[Entity, str] = field(default_factory=dict)
    cached: Mapping[Entity, CachedEnrichment] = field(default_factory=dict)
    answers: Mapping[Entity, Enrichment | None] = field(default_factory=dict)
    outdated: Mapping[Entity, CachedEnrichment] = field(default_factory=dict)
    """What was said too long ago, of what it could not be asked for now."""
    failures: Mapping[Entity, EnrichmentFailure] = field(default_factory=dict)
    """Why there is no answer, not even an outdated one."""
    setbacks: Mapping[Entity, EnrichmentFailure] = field(default_factory=dict)
    """Why there is but an outdated one."""
    markings: Mapping[Entity, Marking] = field(default_factory=dict)
    """How each is marked: by whoever asked, and by all that is known of it here."""

    def enrichment(self, entity: Entity) -> Enrichment | None:
        """Return what is known of an entity; an outdated answer says of when it is."""
        if kept := self.outdated.get(entity):
            return kept.enrichment and _add_date(kept.enrichment, kept)
        if kept := self.cached.get(entity):
            return kept.enrichment
        return self.answers.get(entity)

    def asked(self, entities: Iterable[Entity]) -> EnrichmentResult:
        """Return it for whoever asked for these entities."""
        known = (it for entity in entities if (it := self.enrichment(entity)))
        return EnrichmentResult(
            enrichments=tuple(known), outcome=self._outcome(), reason=self._reason()
        )

    def _outcome(self) -> QueryOutcome:
        """Return ANSWERED where anything was, or there was nothing to ask for."""
        if self.answers or self.cached or self.outdated:
            return QueryOutcome.ANSWERED
        outcomes = {failure.outcome for failure in self.failures.values()}
        if QueryOutcome.UNAVAILABLE in outcomes:
            return QueryOutcome.UNAVAILABLE
        return QueryOutcome.REFUSED if outcomes or self.refused else QueryOutcome.ANSWERED

    def _reason(self) -> str | None:
        reasons = Counter(self._reasons())
        words = [reason if n == 1 else f"{reason} ({n} entities)" for reason, n in reasons.items()]
        more = [f"and {len(words) - _SHOWN} other reasons"] if len(words) > _SHOWN else []
        return "; ".join(words[:_SHOWN] + more) or None

    def _reasons(self) -> Iterator[str]:
        yield from self.refused.values()
        yield from (failure.reason for failure in self.failures.values())
        for failure in self.setbacks.values():
            yield f"{failure.reason}; an earlier answer is used"


def _add_date(enrichment: Enrichment, kept: CachedEnrichment) -> Enrichment:
    words = f"{enrichment.summary} (as of {isoformat(kept.fetched_at)})"
    return replace(enrichment, summary=words, tags=(*enrichment.tags, "outdated"))
